/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/clock.h"
#include "tests/check.h"

#include <string.h>

static void instants_are_read_in_every_form_that_images_have(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} cases[] = {
		{"1970-01-01T00:00:00Z", 0},
		{"2026-01-31T12:00:00.123Z", 1769860800123},
		{"2026-01-31T12:00:00.123456789Z", 1769860800123},
		{"2026-01-31T14:00:00+02:00", 1769860800000},
		{"2026-01-31T06:30:00.5-05:30", 1769860800500},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = {0};
		int64_t ms;

		check_ok(clock_parse(str_of(cases[i].text), &ms, &err), &err);
		assert_int_equal(ms, cases[i].ms);
	}
}

static void what_is_no_instant_is_refused(void **state)
{
	static const char *const wrong[] = {"",
					    "yesterday",
					    "2026-01-31",
					    "2026-01-31T12:00:00",
					    "2026-01-31T12:00:00+2",
					    "2026-01-31T12:00:00Zx"};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct err err = {0};
		int64_t ms;

		check_err(clock_parse(str_of(wrong[i]), &ms, &err), &err, ERR_INVALID);
	}
}

static void what_is_written_is_read_back(void **state)
{
	static const int64_t instants[] = {0, 1, 999, 1769860800123, 253402300799999, -1};
	char text[CLOCK_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(instants) / sizeof(instants[0]); i++) {
		struct err err = {0};
		int64_t ms;

		check_ok(clock_parse(str_of(clock_format(instants[i], text)), &ms, &err), &err);
		assert_int_equal(ms, instants[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(instants_are_read_in_every_form_that_images_have),
		cmocka_unit_test(what_is_no_instant_is_refused),
		cmocka_unit_test(what_is_written_is_read_back),
	};

	return cmocka_run_group_tests_name("layers/clock", tests, NULL, NULL);
}
