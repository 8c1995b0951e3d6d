/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/ignore_priv.h"
#include "tests/bake/cases.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static void check_ignore(const json_t *row)
{
	auto_ignore struct ignore ignore = {0};
	const char *path = case_text(row, 1);
	const struct ignore_rule *rule = NULL;
	struct err err = {0};
	char got;

	check_ok(ignore_parse(str_of(case_text(row, 0)), &ignore, &err), &err);
	got = "+-<"[ignore_judge(&ignore, str_of(path), &rule)];
	if (got != case_text(row, 2)[0])
		fail_msg("%s on %s: %c", case_text(row, 0), path, got);
	assert_int_equal(rule ? rule->line : 0, json_integer_value(json_array_get(row, 3)));
}

/*
 * The table is the JavaScript client's, too: '+' seen, '-' hidden, '<' hidden and
 * perhaps not what is below; then the line of the rule that hides it, or 0.
 */
static void the_last_rule_that_matches_decides(void **state)
{
	AUTO(json) json_t *table = cases_load(CASES_DIR "/ignores.json");
	const char *group;
	json_t *rows;
	json_t *row;
	size_t i;

	(void)state;
	json_object_foreach(table, group, rows)
	{
		json_array_foreach(rows, i, row) check_ignore(row);
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
