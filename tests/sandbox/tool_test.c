/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/tool.h"
#include "tests/check.h"

#include <string.h>

static void there_are_thirteen_tools(void **state)
{
	size_t count = 0;
	struct err err;

	(void)state;
	for (; tool_names[count]; count++)
		check_ok(tool_need(str_of(tool_names[count]), &err), &err);
	assert_int_equal(count, 13);
}

static void another_name_is_none_and_the_nearest_is_said(void **state)
{
	static const struct {
		struct str name;
		const char *said;
	} cases[] = {
		{STR("Bash"), "no tool is called \"Bash\"; did you mean bash?"},
		{STR("process_lst"),
		 "no tool is called \"process_lst\"; did you mean process_list?"},
		{STR("read\0"), "no tool is called \"read\"; did you mean read?"},
		{STR("teleport"), "no tool is called \"teleport\""},
		{STR(""), "no tool is called \"\""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = {0};

		check_err(tool_need(cases[i].name, &err), &err, ERR_NO_TOOL);
		assert_string_equal(err.text, cases[i].said);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_are_thirteen_tools),
		cmocka_unit_test(another_name_is_none_and_the_nearest_is_said),
	};

	return cmocka_run_group_tests_name("sandbox/tool", tests, NULL, NULL);
}
