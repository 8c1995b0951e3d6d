/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/ulid.h"
#include "tests/check.h"

#include <string.h>

static void ulids_have_26_characters_and_do_not_repeat(void **state)
{
	char first[ULID_TEXT_MAX];
	char second[ULID_TEXT_MAX];

	(void)state;
	assert_true(ulid_is_valid(str_of(ulid_new(first))));
	assert_true(ulid_is_valid(str_of(ulid_new(second))));
	assert_string_not_equal(first, second);
	assert_memory_equal(first, second, 5); /* the time's upper digits come first */
}

static void later_milliseconds_sort_behind(void **state)
{
	char first[ULID_TEXT_MAX];
	char second[ULID_TEXT_MAX];

	(void)state;
	ulid_after(STR(""), 1700000000000, first);
	assert_memory_equal(first, "01hf7yat00", 10);
	ulid_after(str_of(first), 1700000000001, second);
	assert_memory_equal(second, "01hf7yat01", 10);
}

static void many_of_one_millisecond_rise(void **state)
{
	char last[ULID_TEXT_MAX];
	char next[ULID_TEXT_MAX];

	(void)state;
	ulid_after(STR(""), 1700000000000, last);
	for (int i = 0; i < 2000; i++) {
		ulid_after(str_of(last), 1700000000000, next);
		assert_true(strcmp(next, last) > 0);
		assert_memory_equal(next, last, 10);
		memcpy(last, next, sizeof(last));
	}
}

static void a_clock_that_goes_back_does_not_matter(void **state)
{
	char next[ULID_TEXT_MAX];

	(void)state;
	ulid_after(STR("01hf7yat00000000000000zzzz"), 5, next);
	assert_string_equal(next, "01hf7yat000000000000010000");
	ulid_after(STR("01hf7yat00zzzzzzzzzzzzzzzz"), 1700000000000, next);
	assert_string_equal(next, "01hf7yat010000000000000000");
}

static void an_id_is_a_prefix_and_a_ulid(void **state)
{
	static const char *const wrong[] = {
		"",
		"agt_",
		"01hf7yat000000000000000000",
		"ses_01hf7yat000000000000000000",
		"agt_01hf7yat00000000000000000",
		"agt_01hf7yat0000000000000000000",
		"agt_01HF7YAT000000000000000000",
		"agt_01hf7yat00000000000000000u",
		"agt_81hf7yat000000000000000000",
	};

	(void)state;
	assert_true(ulid_is_id(STR("agt_"), STR("agt_01hf7yat000000000000000000")));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(ulid_is_id(STR("agt_"), str_of(wrong[i])));
	assert_false(ulid_is_valid((struct str){"01hf7yat0000000000000000\0\0", 26}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ulids_have_26_characters_and_do_not_repeat),
		cmocka_unit_test(later_milliseconds_sort_behind),
		cmocka_unit_test(many_of_one_millisecond_rise),
		cmocka_unit_test(a_clock_that_goes_back_does_not_matter),
		cmocka_unit_test(an_id_is_a_prefix_and_a_ulid),
	};

	return cmocka_run_group_tests_name("layers/ulid", tests, NULL, NULL);
}
