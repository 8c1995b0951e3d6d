/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/hub.h"
#include "tests/check.h"

static void docker_hub_has_several_names_and_one_login(void **state)
{
	static const char *const names[] = {"docker.io", "index.docker.io", "registry-1.docker.io"};
	static const char *const others[] = {"", "hub.docker.io", "docker.io.example", "quay.io",
					     "docker.io:443"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_true(hub_is_host(str_of(names[i])));
		assert_true(str_equal(hub_login_key(str_of(names[i])), STR(HUB_LOGIN)));
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_false(hub_is_host(str_of(others[i])));
		assert_true(str_equal(hub_login_key(str_of(others[i])), str_of(others[i])));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(docker_hub_has_several_names_and_one_login),
	};

	return cmocka_run_group_tests_name("registry/hub", tests, NULL, NULL);
}
