/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/hex.h"
#include "tests/check.h"

static void every_byte_goes_there_and_back(void **state)
{
	uint8_t bytes[256];
	uint8_t back[256];
	char hex[2 * sizeof(bytes) + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	assert_string_equal(hex_encode("\x00\x9f\xff", 3, hex), "009fff");
	assert_true(hex_decode(str_of(hex_encode(bytes, sizeof(bytes), hex)), back));
	assert_memory_equal(bytes, back, sizeof(bytes));
}

static void what_is_no_pair_of_lower_case_digits_is_refused(void **state)
{
	static const char *const wrong[] = {"0", "012", "0g", "AB", "0x", " 1", "1 ", "\xff\xff"};
	uint8_t out[4];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(hex_decode(str_of(wrong[i]), out));
	assert_true(hex_decode(STR(""), out));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte_goes_there_and_back),
		cmocka_unit_test(what_is_no_pair_of_lower_case_digits_is_refused),
	};

	return cmocka_run_group_tests_name("layers/hex", tests, NULL, NULL);
}
