/* SPDX-License-Identifier: Apache-2.0 */
#include "api/host.h"
#include "tests/check.h"

static void addresses_localhost_and_given_names_are_ours(void **state)
{
	static const char *const names[] = {"hearth.internal"};
	static const char *const ours[] = {
		"localhost",       "localhost:7460",
		"LocalHost",       "127.0.0.1:7460",
		"10.0.0.7",        "[::1]",
		"[::1]:80",        "[fe80::1]",
		"hearth.internal", "Hearth.Internal:443",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		assert_true(host_is_ours(str_of(ours[i]), names, 1));
}

static void other_names_are_a_page_of_somebody_elses(void **state)
{
	static const char *const names[] = {"hearth.internal"};
	static const char *const others[] = {
		"",
		":80",
		"evil.example",
		"evil.example:7460",
		"localhost.evil.example",
		"grt_1.preview.localhost:7460",
		"127.0.0.1.evil.example",
		"localhost:",
		"[::1",
		"[]",
		"hearth.internal.",
		"x@localhost",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(host_is_ours(str_of(others[i]), names, 1));
	assert_false(host_is_ours(STR("localhost\0.x"), names, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_localhost_and_given_names_are_ours),
		cmocka_unit_test(other_names_are_a_page_of_somebody_elses),
	};

	return cmocka_run_group_tests_name("api/host", tests, NULL, NULL);
}
