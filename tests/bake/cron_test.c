/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/cron.h"
#include "layers/base/clock.h"
#include "tests/check.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static int64_t instant(const char *text)
{
	struct err err = {0};
	int64_t ms = 0;

	check_ok(clock_parse(str_of(text), &ms, &err), &err);
	return ms;
}

static void check_next(const char *expression, const char *after, const char *expected)
{
	struct err err = {0};
	struct cron cron;
	char text[CLOCK_TEXT_MAX];

	check_ok(cron_parse(str_of(expression), &cron, &err), &err);
	if (cron_next(&cron, instant(after)) != instant(expected))
		fail_msg("%s after %s: %s", expression, after,
			 clock_format(cron_next(&cron, instant(after)), text));
}

static void the_next_time_is_the_first_that_matches(void **state)
{
	static const char *const cases[][3] = {
		{"* * * * *", "2026-01-31T12:00:00.000Z", "2026-01-31T12:01:00.000Z"},
		{"* * * * *", "2026-01-31T11:59:59.999Z", "2026-01-31T12:00:00.000Z"},
		{"0 * * * *", "2026-12-31T23:00:00.000Z", "2027-01-01T00:00:00.000Z"},
		{"*/15 * * * *", "2026-01-31T12:16:00.000Z", "2026-01-31T12:30:00.000Z"},
		{"5-59/20 8 * * *", "2026-01-31T08:25:30.000Z", "2026-01-31T08:45:00.000Z"},
		{"5-59/20 8 * * *", "2026-01-31T08:45:00.000Z", "2026-02-01T08:05:00.000Z"},
		{"30 4 1 * *", "2026-01-31T12:00:00.000Z", "2026-02-01T04:30:00.000Z"},
		{"0 0 31 * *", "2026-01-31T00:00:00.000Z", "2026-03-31T00:00:00.000Z"},
		{"0 0 29 2 *", "2026-01-31T00:00:00.000Z", "2028-02-29T00:00:00.000Z"},
		{"0 0 29 feb *", "2096-03-01T00:00:00.000Z", "2104-02-29T00:00:00.000Z"},
		{"0 9 * * mon-fri", "2026-01-30T09:00:00.000Z", "2026-02-02T09:00:00.000Z"},
		{"0 9 * * MON,Wed", "2026-02-02T09:00:00.000Z", "2026-02-04T09:00:00.000Z"},
		{"0 0 * * 0", "2026-01-31T00:00:00.000Z", "2026-02-01T00:00:00.000Z"},
		{"0 0 * * 7", "2026-01-31T00:00:00.000Z", "2026-02-01T00:00:00.000Z"},
		{"0 0 * * fri-sun", "2026-01-31T00:00:00.000Z", "2026-02-01T00:00:00.000Z"},
		{"0 0 * * 5-7", "2026-02-01T00:00:00.000Z", "2026-02-06T00:00:00.000Z"},
		{"0 0 1 jan,jul *", "2026-01-31T00:00:00.000Z", "2026-07-01T00:00:00.000Z"},
		{"0 0 1 */6 *", "2026-01-31T00:00:00.000Z", "2026-07-01T00:00:00.000Z"},
		{" 1\t2  * * * ", "2026-01-31T00:00:00.000Z", "2026-01-31T02:01:00.000Z"},
		{"59 23 31 12 *", "1970-01-01T00:00:00.000Z", "1970-12-31T23:59:00.000Z"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		check_next(cases[i][0], cases[i][1], cases[i][2]);
}

static void one_of_two_day_fields_is_enough_and_a_star_asks_for_both(void **state)
{
	(void)state;
	/* 2026-02-01 is a Sunday. */
	check_next("0 0 13 * 5", "2026-02-01T00:00:00.000Z", "2026-02-06T00:00:00.000Z");
	check_next("0 0 13 * 5", "2026-02-06T00:00:00.000Z", "2026-02-13T00:00:00.000Z");
	check_next("0 0 4 * 5", "2026-02-01T00:00:00.000Z", "2026-02-04T00:00:00.000Z");
	check_next("0 0 */2 * 5", "2026-02-01T00:00:00.000Z", "2026-02-13T00:00:00.000Z");
	check_next("0 0 13 * */5", "2026-02-01T00:00:00.000Z", "2026-02-13T00:00:00.000Z");
	check_next("0 0 29 2 */7", "2026-01-01T00:00:00.000Z", "2032-02-29T00:00:00.000Z");
	check_next("0 0 31 2 mon", "2026-01-31T00:00:00.000Z", "2026-02-02T00:00:00.000Z");
}

static void what_is_no_expression_is_refused(void **state)
{
	static const char *const wrong[] = {
		"",
		"* * * *",
		"* * * * * *",
		"@daily",
		"60 * * * *",
		"* 24 * * *",
		"* * 0 * *",
		"* * 32 * *",
		"* * * 0 *",
		"* * * 13 *",
		"* * * * 8",
		"-1 * * * *",
		"5-1 * * * *",
		"*/0 * * * *",
		"5/15 * * * *",
		"1, * * * *",
		",1 * * * *",
		"1,,2 * * * *",
		"1- * * * *",
		"*-5 * * * *",
		"** * * * *",
		"* * * mon *",
		"* * * * jan",
		"mon * * * *",
		"* * * * sunday",
		"1.5 * * * *",
		"* * * janu *",
		"99999999999999999999 * * * *",
		"? * * * *",
		"* * * * 5-",
		"* * L * *",
		"1-2-3 * * * *",
		"*/ * * * *",
		"* * * * 5#2",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct cron cron = {.minutes = 42};
		struct err err = {0};

		if (cron_parse(str_of(wrong[i]), &cron, &err) == 0)
			fail_msg("%s is taken", wrong[i]);
		assert_int_equal(err.kind, ERR_INVALID);
		assert_int_equal(cron.minutes, 42);
	}
}

static void the_field_that_is_wrong_is_named(void **state)
{
	struct err err = {0};
	struct cron cron;

	(void)state;
	check_err(cron_parse(STR("0 0 * 13 *"), &cron, &err), &err, ERR_INVALID);
	assert_non_null(strstr(err.text, "the month: expected numbers from 1 to 12"));
	check_err(cron_parse(STR("0 0 *"), &cron, &err), &err, ERR_INVALID);
	assert_non_null(strstr(err.text, "expected five fields"));
}

static void what_no_day_ever_matches_is_refused(void **state)
{
	static const char *const never[] = {"0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 31 2 *",
					    "0 0 30-31 feb */2"};

	(void)state;
	for (size_t i = 0; i < COUNT(never); i++) {
		struct err err = {0};
		struct cron cron;

		check_err(cron_parse(str_of(never[i]), &cron, &err), &err, ERR_INVALID);
		assert_non_null(strstr(err.text, "no day is ever like that"));
	}
}

static void a_long_expression_is_refused(void **state)
{
	auto_buf struct buf text = BUF_INIT(2 * CRON_TEXT_MAX);
	struct err err = {0};
	struct cron cron;

	(void)state;
	check_ok(buf_add(&text, STR("* * * * 1"), &err), &err);
	while (text.len <= CRON_TEXT_MAX)
		check_ok(buf_add(&text, STR(",1"), &err), &err);
	check_err(cron_parse(buf_str(&text), &cron, &err), &err, ERR_INVALID);
}

static void clocks_that_make_no_sense_have_a_next_time(void **state)
{
	struct err err = {0};
	struct cron cron;

	(void)state;
	check_ok(cron_parse(STR("0 0 1 1 *"), &cron, &err), &err);
	assert_int_equal(cron_next(&cron, INT64_MIN), instant("1971-01-01T00:00:00.000Z"));
	assert_true(cron_next(&cron, INT64_MAX) > instant("9999-12-31T23:59:00.000Z"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_next_time_is_the_first_that_matches),
		cmocka_unit_test(one_of_two_day_fields_is_enough_and_a_star_asks_for_both),
		cmocka_unit_test(what_is_no_expression_is_refused),
		cmocka_unit_test(the_field_that_is_wrong_is_named),
		cmocka_unit_test(what_no_day_ever_matches_is_refused),
		cmocka_unit_test(a_long_expression_is_refused),
		cmocka_unit_test(clocks_that_make_no_sense_have_a_next_time),
	};

	return cmocka_run_group_tests_name("bake/cron", tests, NULL, NULL);
}
