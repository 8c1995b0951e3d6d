/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/path.h"
#include "tests/check.h"

#include <string.h>

static void joining_cleans_and_stops_at_the_root(void **state)
{
	static const struct {
		const char *base;
		const char *name;
		const char *joined;
	} cases[] = {
		{"/", "", "/"},
		{"/a", "b", "/a/b"},
		{"/a", "/b", "/b"},
		{"/a/b", "..", "/a"},
		{"/a", "../../..", "/"},
		{"/a", "./b//c/", "/a/b/c"},
		{"/", "a b/\xff", "/a b/\xff"},
		{"/a/..", "b/../c", "/c"},
		{"/a", "...", "/a/..."},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_buf struct buf path = BUF_INIT(PATH_TEXT_MAX);
		struct err err = {0};

		check_ok(path_join(str_of(cases[i].base), str_of(cases[i].name), &path, &err),
			 &err);
		assert_string_equal(path.ptr, cases[i].joined);
	}
}

static void the_base_is_what_follows_the_last_slash(void **state)
{
	struct str base = path_base(STR("/a/bc"));

	(void)state;
	assert_true(str_equal(base, STR("bc")));
	assert_true(str_equal(path_base(STR("bc")), STR("bc")));
	assert_int_equal(path_base(STR("a/")).len, 0);
	assert_int_equal(path_base(STR("/")).len, 0);
}

static void show_is_fit_for_a_terminal(void **state)
{
	char text[PATH_SHOWN_MAX];
	char longer[2 * PATH_SHOWN_MAX];

	(void)state;
	assert_string_equal(path_show(STR("a\033[2J\n\0n\303\244\177"), text), "a?[2J??n\303\244?");
	memset(longer, 'x', sizeof(longer));
	assert_int_equal(strlen(path_show((struct str){longer, sizeof(longer)}, text)),
			 PATH_SHOWN_MAX - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(show_is_fit_for_a_terminal),
		cmocka_unit_test(joining_cleans_and_stops_at_the_root),
		cmocka_unit_test(the_base_is_what_follows_the_last_slash),
	};

	return cmocka_run_group_tests_name("layers/path", tests, NULL, NULL);
}
