/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/ignore_priv.h"
#include "tests/check.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* '+' seen, '-' hidden, '<' hidden and perhaps not what is below */
static const struct {
	const char *file;
	const char *path;
	char verdict;
	size_t line; /* of the rule that hides it */
} cases[] = {
	{"", "a", '+', 0},
	{"# a\n\n  \n", "a", '+', 0},
	{"a", "a", '-', 1},
	{"# x\na\n", "a/b", '-', 2},
	/* lines */
	{"\xef\xbb\xbf"
	 "a",
	 "a", '-', 1},
	{"  a\t\r\n", "a", '-', 1},
	{" #a", "#a", '-', 1},
	{"#a", "#a", '+', 0},
	{"/a", "a", '-', 1},
	{"a/", "a", '-', 1},
	{"./a/../b", "b", '-', 1},
	{"a b", "a b", '-', 1},
	{".dockerignore", ".dockerignore", '-', 1},
	/* the last match decides */
	{"*\n!keep", "keep", '+', 0},
	{"*\n!keep", "other", '-', 1},
	{"!keep\n*", "keep", '-', 2},
	{"*\n! keep", "keep", '+', 0},
	{"*.md\n!README*.md\nREADME-secret.md", "README-secret.md", '-', 3},
	{"*.md\n!README*.md\nREADME-secret.md", "README-a.md", '+', 0},
	/* seen again below what is hidden */
	{"d\n!d/keep", "d", '<', 1},
	{"d\n!d/keep", "d/keep", '+', 0},
	{"d\n!d/keep", "d/keep/x", '+', 0},
	{"d\n!d/keep", "d/other", '-', 1},
	{"d\n!e/keep", "d", '-', 1},
	{"d\n!**/keep", "d", '<', 1},
	{"d\n!d/keep\nd/keep/x", "d/keep/x", '-', 3},
	/* a double star, and one file seen again */
	{"**\n!./source.txt", "source.txt", '+', 0},
	{"**\n!./source.txt", "other.txt", '-', 1},
	{"**\n!./source.txt", "d/source.txt", '-', 1},
	/* of a directory that is hidden only what starts like this */
	{"test*\n!*/test1*", "testdir", '<', 1},
	{"test*\n!*/test1*", "testdir/test1.txt", '+', 0},
	{"test*\n!*/test1*", "testdir/test2.txt", '-', 1},
	/* slashes in front and behind */
	{"/folder1/\n/folder2\nfolder3/\nfolder4", "folder1/x", '-', 1},
	{"/folder1/\n/folder2\nfolder3/\nfolder4", "folder2", '-', 2},
	{"/folder1/\n/folder2\nfolder3/\nfolder4", "folder3/x", '-', 3},
	{"/folder1/\n/folder2\nfolder3/\nfolder4", "folder4", '-', 4},
	{"/folder1/\n/folder2\nfolder3/\nfolder4", "folder5", '+', 0},
};

static void the_last_rule_that_matches_decides(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		auto_ignore struct ignore ignore = {0};
		const struct ignore_rule *rule = NULL;
		struct err err = {0};
		char got;

		check_ok(ignore_parse(str_of(cases[i].file), &ignore, &err), &err);
		got = "+-<"[ignore_judge(&ignore, str_of(cases[i].path), &rule)];
		if (got != cases[i].verdict)
			fail_msg("case %zu, %s: %c", i, cases[i].path, got);
		assert_int_equal(rule ? rule->line : 0, cases[i].line);
	}
}

static void what_is_no_rule_is_named_with_its_line(void **state)
{
	static const struct {
		struct str file;
		const char *says;
	} wrong[] = {
		{STR("a\n!"), ".dockerignore line 2: a pattern is missing behind !"},
		{STR("!  \n"), ".dockerignore line 1: a pattern is missing"},
		{STR("[x"), ".dockerignore line 1: [x is no pattern"},
		{STR("a\0b"), "a NUL byte"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct ignore ignore = {0};
		struct err err = {0};

		check_err(ignore_parse(wrong[i].file, &ignore, &err), &err, ERR_REFUSED);
		if (!strstr(err.text, wrong[i].says))
			fail_msg("said \"%s\", not \"%s\"", err.text, wrong[i].says);
	}
}

static void rules_have_a_ceiling(void **state)
{
	auto_buf struct buf text = BUF_INIT(IGNORE_FILE_MAX);
	struct ignore ignore = {0};
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i <= IGNORE_RULES_MAX; i++)
		check_ok(buf_add(&text, STR("a\n"), &err), &err);
	check_err(ignore_parse(buf_str(&text), &ignore, &err), &err, ERR_LIMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_rule_that_matches_decides),
		cmocka_unit_test(what_is_no_rule_is_named_with_its_line),
		cmocka_unit_test(rules_have_a_ceiling),
	};

	return cmocka_run_group_tests_name("bake/ignore", tests, NULL, NULL);
}
