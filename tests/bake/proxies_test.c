/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/proxies.h"
#include "tests/check.h"

#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static void check_proxies(const char *config, const char *wanted)
{
	auto_proxies struct proxies proxies = {.count = 0};
	auto_buf struct buf said = BUF_INIT(4096);
	struct err err = {0};

	check_ok(proxies_read(str_of(config), &proxies, &err), &err);
	check_ok(buf_add(&said, STR(""), &err), &err);
	for (size_t i = 0; i < proxies.count; i++)
		check_ok(buf_addf(&said, &err, "%s\n", proxies.at[i]), &err);
	assert_string_equal(said.ptr, wanted);
}

static void the_default_proxies_become_variables(void **state)
{
	(void)state;
	check_proxies(
		"{\"proxies\":{\"default\":{\"httpProxy\":\"http://p:1\",\"noProxy\":\"a,.b\","
		"\"httpsProxy\":\"http://q\",\"ftpProxy\":\"\",\"allProxy\":\"socks5://s\"},"
		"\"tcp://host\":{\"ftpProxy\":\"http://other\"}},\"auths\":{}}",
		"HTTP_PROXY=http://p:1\nhttp_proxy=http://p:1\n"
		"HTTPS_PROXY=http://q\nhttps_proxy=http://q\n"
		"NO_PROXY=a,.b\nno_proxy=a,.b\n"
		"ALL_PROXY=socks5://s\nall_proxy=socks5://s\n");
}

static void a_file_without_proxies_has_none(void **state)
{
	static const char *const files[] = {
		"{}",
		"{\"auths\":{\"a\":{}}}",
		"{\"proxies\":{}}",
		"{\"proxies\":{\"default\":{}}}",
		"{\"proxies\":{\"default\":null}}",
		"{\"proxies\":{\"tcp://host\":{\"httpProxy\":\"http://p\"}}}",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(files); i++)
		check_proxies(files[i], "");
}

static void what_is_no_proxy_is_named(void **state)
{
	static const struct {
		const char *config;
		const char *says;
	} wrong[] = {
		{"{\"proxies\":[]}", "proxies: expected an object"},
		{"{\"proxies\":{\"default\":\"http://p\"}}", "proxies.default: expected an object"},
		{"{\"proxies\":{\"default\":{\"httpProxy\":\"http://p\",\"noProxy\":[]}}}",
		 "proxies.default.noProxy: expected a string"},
		{"{", "line 1"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct proxies proxies = {.count = 0};
		struct err err = {0};

		check_err(proxies_read(str_of(wrong[i].config), &proxies, &err), &err, ERR_INVALID);
		if (!strstr(err.text, wrong[i].says))
			fail_msg("said \"%s\", not \"%s\"", err.text, wrong[i].says);
		assert_int_equal(proxies.count, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_default_proxies_become_variables),
		cmocka_unit_test(a_file_without_proxies_has_none),
		cmocka_unit_test(what_is_no_proxy_is_named),
	};

	return cmocka_run_group_tests_name("bake/proxies", tests, NULL, NULL);
}
