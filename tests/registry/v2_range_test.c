/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/v2_range.h"
#include "tests/check.h"

#define SIZE ((uint64_t)2048)

static void a_part_is_cut_to_the_blob(void **state)
{
	static const struct {
		const char *field;
		uint64_t first;
		uint64_t count;
	} cases[] = {
		{"bytes=500-1499", 500, 1000},
		{"bytes=0-0", 0, 1},
		{"bytes=500-", 500, 1548},
		{"bytes=-500", 1548, 500},
		{"bytes=-9999", 0, 2048},
		{"bytes=2000-5000", 2000, 48},
		{"bytes=2047-2047", 2047, 1},
		{"BYTES=1-2", 1, 2},
		{" bytes= 1-2 ", 1, 2},
		{"bytes=0-99999999999999999999999", 0, 2048},
		{"bytes=-99999999999999999999999", 0, 2048},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct v2_range range;

		assert_int_equal(v2_range_parse(cases[i].field, SIZE, &range), 1);
		assert_int_equal(range.first, cases[i].first);
		assert_int_equal(range.count, cases[i].count);
	}
}

static void a_range_without_a_byte_is_refused(void **state)
{
	static const char *const fields[] = {
		"bytes=500-0",
		"bytes=2048-",
		"bytes=5000-10000",
		"bytes=-0",
		"bytes=99999999999999999999999-",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		struct v2_range range;

		assert_int_equal(v2_range_parse(fields[i], SIZE, &range), -1);
	}
}

static void what_is_no_range_asks_for_the_whole(void **state)
{
	static const char *const fields[] = {
		NULL,
		"",
		"bytes",
		"bytes=",
		"bytes=-",
		"bytes=a-b",
		"bytes=1-2,4-5",
		"items=1-2",
		"bytes=1",
		"bytes=0x1-2",
		"bytes 500-1499",
		"bytes=1--2",
		"bytes=+1-2",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		struct v2_range range;

		assert_int_equal(v2_range_parse(fields[i], SIZE, &range), 0);
		assert_int_equal(range.first, 0);
		assert_int_equal(range.count, SIZE);
	}
}

static void an_empty_blob_comes_whatever_range_is_asked_for(void **state)
{
	struct v2_range range;

	(void)state;
	assert_int_equal(v2_range_parse("bytes=0-", 0, &range), 0);
	assert_int_equal(v2_range_parse("bytes=-5", 0, &range), 0);
	assert_int_equal(range.count, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_part_is_cut_to_the_blob),
		cmocka_unit_test(a_range_without_a_byte_is_refused),
		cmocka_unit_test(what_is_no_range_asks_for_the_whole),
		cmocka_unit_test(an_empty_blob_comes_whatever_range_is_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
