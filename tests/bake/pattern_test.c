/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/pattern_priv.h"
#include "tests/bake/cases.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static void check_pattern(const char *text, const char *path, char expected)
{
	auto_pattern struct pattern pattern = {0};
	struct err err = {0};
	char got;

	check_ok(pattern_parse(str_of(text), &pattern, &err), &err);
	got = "-<+"[pattern_try(&pattern, str_of(path))];
	if (got != expected)
		fail_msg("%s on \"%s\": %c, not %c", text, path, got, expected);
}

/*
 * The table is the JavaScript client's, too: '+' matches, '-' does not, '<' not
 * itself but something below may.
 */
static void patterns_match_what_they_should(void **state)
{
	AUTO(json) json_t *table = cases_load(CASES_DIR "/patterns.json");
	const char *group;
	json_t *rows;
	json_t *row;
	size_t i;

	(void)state;
	json_object_foreach(table, group, rows)
	{
		json_array_foreach(rows, i, row)
			check_pattern(case_text(row, 0), case_text(row, 1), case_text(row, 2)[0]);
	}
}

static void bytes_that_are_no_text_match(void **state)
{
	(void)state;
	check_pattern("?", "\xff", '+');
	check_pattern("\xff", "\xff", '+');
	check_pattern("*\xfe", "a\xff", '-');
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
		cmocka_unit_test(bytes_that_are_no_text_match),
		cmocka_unit_test(open_ends_are_refused),
		cmocka_unit_test(many_stars_take_no_longer),
		cmocka_unit_test(wildcards_are_seen_unless_escaped),
	};

	return cmocka_run_group_tests_name("bake/pattern", tests, NULL, NULL);
}
