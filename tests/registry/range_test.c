/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/range_priv.h"
#include "tests/check.h"

static void parse_reads_what_servers_send(void **state)
{
	struct range range;
	struct err err = {0};

	(void)state;
	check_ok(range_parse(STR("bytes 5-9/10"), &range, &err), &err);
	assert_int_equal(range.first, 5);
	assert_int_equal(range.last, 9);
	assert_int_equal(range.size, 10);
	check_ok(range_parse(STR("bytes 0-0/*"), &range, &err), &err);
	assert_true(range.size == RANGE_SIZE_UNKNOWN);
	check_ok(
		range_parse(STR("bytes 0-18446744073709551613/18446744073709551614"), &range, &err),
		&err);
}

static void parse_refuses_what_cannot_be(void **state)
{
	static const char *const wrong[] = {
		"",
		"bytes",
		"bytes ",
		"5-9/10",
		"bytes 9-5/10",
		"bytes 5-10/10",
		"bytes */10",
		"bytes 5-9",
		"bytes 5-9/",
		"bytes 5-9/10x",
		"bytes -5-9/10",
		"bytes 0-1/99999999999999999999",
		"lines 5-9/10",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct range range = {.first = 42};
		struct err err = {0};

		check_err(range_parse(str_of(wrong[i]), &range, &err), &err, ERR_REMOTE);
		assert_int_equal(range.first, 42);
	}
}

static void numbers_are_digits_only(void **state)
{
	uint64_t number = 0;

	(void)state;
	assert_true(range_parse_number(STR("18446744073709551614"), &number));
	assert_true(number == UINT64_MAX - 1);
	assert_false(range_parse_number(STR("18446744073709551615"), &number)); /* unknown */
	assert_false(range_parse_number(STR("18446744073709551616"), &number));
	assert_false(range_parse_number(STR(""), &number));
	assert_false(range_parse_number(STR("+1"), &number));
	assert_false(range_parse_number(STR("1 "), &number));
}

static void what_arrived_begins_at_nothing(void **state)
{
	static const char *const wrong[] = {"", "0-", "1-5", "0-5/9", "bytes=5", "0-x", "x"};
	static const char *const right[] = {"0-5", "bytes=0-5", "bytes 0-5"};
	uint64_t last = 42;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(range_parse_sent(str_of(wrong[i]), &last));
	assert_int_equal(last, 42);
	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
		last = 42;
		assert_true(range_parse_sent(str_of(right[i]), &last));
		assert_int_equal(last, 5);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse_reads_what_servers_send),
		cmocka_unit_test(parse_refuses_what_cannot_be),
		cmocka_unit_test(numbers_are_digits_only),
		cmocka_unit_test(what_arrived_begins_at_nothing),
	};

	return cmocka_run_group_tests_name("registry/range", tests, NULL, NULL);
}
