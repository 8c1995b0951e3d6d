/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/nearest.h"
#include "tests/check.h"

#include <string.h>

static const char *const names[] = {"RUN", "COPY", "ENV", "WORKDIR", "memoryMb", "timeoutMs"};

static void a_slip_finds_its_name(void **state)
{
	static const struct {
		const char *wanted;
		const char *hint;
	} cases[] = {
		{"RNU", "; did you mean RUN?"},           {"run", "; did you mean RUN?"},
		{"RUNN", "; did you mean RUN?"},          {"CPY", "; did you mean COPY?"},
		{"EVN", "; did you mean ENV?"},           {"workdri", "; did you mean WORKDIR?"},
		{"WRKDIRR", "; did you mean WORKDIR?"},   {"memory_mb", "; did you mean memoryMb?"},
		{"timeout", "; did you mean timeoutMs?"},
	};
	char text[NEAREST_HINT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(nearest_hint(str_of(cases[i].wanted), names,
						 sizeof(names) / sizeof(names[0]), text),
				    cases[i].hint);
}

static void another_word_finds_nothing(void **state)
{
	static const char *const wanted[] = {"", "ENTRYPOINT", "FROM", "ADD", "x", "zzzzzz"};
	char text[NEAREST_HINT_MAX];
	char huge[1000];

	(void)state;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		assert_string_equal(nearest_hint(str_of(wanted[i]), names,
						 sizeof(names) / sizeof(names[0]), text),
				    "");
	memset(huge, 'R', sizeof(huge));
	assert_string_equal(nearest_hint((struct str){huge, sizeof(huge)}, names, 6, text), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slip_finds_its_name),
		cmocka_unit_test(another_word_finds_nothing),
	};

	return cmocka_run_group_tests_name("layers/nearest", tests, NULL, NULL);
}
