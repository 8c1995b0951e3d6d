/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/pattern_priv.h"
#include "tests/check.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* '+' matches, '-' does not, '<' not itself but something below may. */
static const struct {
	const char *pattern;
	const char *path;
	char reach;
} cases[] = {
	/* rooted, cleaned */
	{"foo", "foo", '+'},
	{"foo", "a/foo", '-'},
	{"foo", "foobar", '-'},
	{"foo", "foo/a/b", '+'},
	{"foo", "fo", '-'},
	{"/foo/", "foo", '+'},
	{"./a//b/../c", "a/c", '+'},
	{"a/b", "a", '<'},
	{"a/b", "", '<'},
	{"a/b", "ab", '-'},
	{"a/b", "a/b/c", '+'},
	{"", "a", '-'},
	{".", "a", '-'},
	{"/", "a", '-'},
	/* one star, one character */
	{"*", "a", '+'},
	{"*", "a/b", '+'},
	{"*.c", "a.c", '+'},
	{"*.c", ".c", '+'},
	{"*.c", "d/a.c", '-'},
	{"*.c", "d.c/x", '+'},
	{"*/*.c", "d/a.c", '+'},
	{"*/*.c", "d", '<'},
	{"*/*.c", "a.c", '<'},
	{"*/temp*", "sub/temporary", '+'},
	{"*/*/temp*", "sub/x/temp", '+'},
	{"a*b*c", "aXbYc", '+'},
	{"a*b*c", "abcd", '-'},
	{"te?t", "test", '+'},
	{"te?t", "te\xc3\xbct", '+'},
	{"te?t", "te/t", '-'},
	{"te?t", "tet", '-'},
	/* two stars */
	{"**", "a", '+'},
	{"**", "a/b/c", '+'},
	{"**/foo", "foo", '+'},
	{"**/foo", "a/foo", '+'},
	{"**/foo", "a/b/foo/c", '+'},
	{"**/foo", "a/xfoo", '<'},
	{"**/*.go", "a.go", '+'},
	{"**/*.go", "a/b/c.go", '+'},
	{"**/*.go", "a/b/c.gox", '<'},
	{"a/**", "a", '<'},
	{"a/**", "a/b", '+'},
	{"a/**", "a/b/c", '+'},
	{"a/**", "b", '-'},
	{"a/**/b", "a/b", '+'},
	{"a/**/b", "a/x/y/b", '+'},
	{"a/**/b", "a/xb", '<'},
	{"a**/b", "ax/y/b", '+'},
	{"**x", "ax", '+'},
	{"**x", "a/bx", '+'},
	{"**/", "a/b", '+'},
	{"**/a/**/b/**", "z/a/y/b/x", '+'},
	/* classes */
	{"[a-c]x", "bx", '+'},
	{"[a-c]x", "dx", '-'},
	{"[^a-c]x", "dx", '+'},
	{"[^a-c]x", "bx", '-'},
	{"[^a]b", "/b", '-'},
	{"[\\]]", "]", '+'},
	{"[\\-x]", "-", '+'},
	{"arr[[]0].txt", "arr[0].txt", '+'},
	{"[\xc3\xa4-\xc3\xbc]", "\xc3\xb6", '+'},
	/* escapes */
	{"a\\*b", "a*b", '+'},
	{"a\\*b", "axb", '-'},
	{"\\[x]", "[x]", '+'},
	/* bytes that are no text */
	{"?", "\xff", '+'},
	{"\xff", "\xff", '+'},
	{"*\xfe", "a\xff", '-'},
	/* no special meaning */
	{"a.b", "axb", '-'},
	{"a+(b)|{c}$^", "a+(b)|{c}$^", '+'},
};

static void patterns_match_what_they_should(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		auto_pattern struct pattern pattern = {0};
		struct err err = {0};
		char got;

		check_ok(pattern_parse(str_of(cases[i].pattern), &pattern, &err), &err);
		got = "-<+"[pattern_try(&pattern, str_of(cases[i].path))];
		if (got != cases[i].reach)
			fail_msg("%s on \"%s\": %c, not %c", cases[i].pattern, cases[i].path, got,
				 cases[i].reach);
	}
}

static void open_ends_are_refused(void **state)
{
	static const char *const wrong[] = {"[",    "[]",   "[a",  "a[",  "[a-", "[a-]",
					    "[-a]", "[]a]", "[^]", "a\\", "[\\", "[a-\\"};

	(void)state;
	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct pattern pattern = {0};
		struct err err = {0};

		check_err(pattern_parse(str_of(wrong[i]), &pattern, &err), &err, ERR_REFUSED);
		assert_non_null(strstr(err.text, "is no pattern"));
	}
}

static void many_stars_take_no_longer(void **state)
{
	auto_pattern struct pattern pattern = {0};
	auto_buf struct buf text = BUF_INIT(PATH_TEXT_MAX);
	auto_buf struct buf path = BUF_INIT(PATH_TEXT_MAX);
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i < 200; i++) {
		check_ok(buf_add(&text, STR("**/*a"), &err), &err);
		check_ok(buf_add(&path, STR("a/aaaaaa"), &err), &err);
	}
	check_ok(buf_add(&text, STR("b"), &err), &err);
	check_ok(pattern_parse(buf_str(&text), &pattern, &err), &err);
	assert_int_equal(pattern_try(&pattern, buf_str(&path)), PATTERN_BELOW);
}

static void wildcards_are_seen_unless_escaped(void **state)
{
	(void)state;
	assert_true(pattern_has_wildcard(STR("a*")));
	assert_true(pattern_has_wildcard(STR("?")));
	assert_true(pattern_has_wildcard(STR("a[b]")));
	assert_true(pattern_has_wildcard(STR("\\\\*")));
	assert_false(pattern_has_wildcard(STR("a\\*")));
	assert_false(pattern_has_wildcard(STR("a]b")));
	assert_false(pattern_has_wildcard(STR("")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patterns_match_what_they_should),
		cmocka_unit_test(open_ends_are_refused),
		cmocka_unit_test(many_stars_take_no_longer),
		cmocka_unit_test(wildcards_are_seen_unless_escaped),
	};

	return cmocka_run_group_tests_name("bake/pattern", tests, NULL, NULL);
}
