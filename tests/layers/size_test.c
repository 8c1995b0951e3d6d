/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/size.h"
#include "tests/check.h"

static void a_size_has_a_unit_or_none(void **state)
{
	static const struct {
		const char *text;
		uint64_t disk;
		uint64_t memory;
	} cases[] = {
		{"0", 0, 0},
		{"4096", 4096, 4096},
		{"8b", 8, 8},
		{"1k", 1000, 1024},
		{"64M", 64000000, (uint64_t)64 << 20},
		{"20g", 20000000000, (uint64_t)20 << 30},
		{"20GB", 20000000000, (uint64_t)20 << 30},
		{"2t", 2000000000000, (uint64_t)2 << 40},
		{"1p", 1000000000000000, (uint64_t)1 << 50},
		{"1Ki", 1024, 1024},
		{"20Gi", (uint64_t)20 << 30, (uint64_t)20 << 30},
		{"64MiB", (uint64_t)64 << 20, (uint64_t)64 << 20},
		{"16383PiB", (uint64_t)16383 << 50, (uint64_t)16383 << 50},
		{"18446744073709551614", UINT64_MAX - 1, UINT64_MAX - 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = {0};
		uint64_t disk;
		uint64_t memory;

		check_ok(size_parse(str_of(cases[i].text), SIZE_DISK, &disk, &err), &err);
		check_ok(size_parse(str_of(cases[i].text), SIZE_MEMORY, &memory, &err), &err);
		assert_int_equal(disk, cases[i].disk);
		assert_int_equal(memory, cases[i].memory);
	}
}

static void what_is_no_size_is_refused(void **state)
{
	static const char *const wrong[] = {"",
					    "G",
					    "-1",
					    "+1",
					    " 1",
					    "1 G",
					    "1.5G",
					    "1e9",
					    "0x10",
					    "1kk",
					    "1i",
					    "1iB",
					    "1bb",
					    "1GBi",
					    "much",
					    "1GBit",
					    "16384Pi",
					    "99999999p",
					    "99999999999999999999"};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct err err = {0};
		uint64_t size = 42;

		check_err(size_parse(str_of(wrong[i]), SIZE_DISK, &size, &err), &err, ERR_INVALID);
		assert_int_equal(size, 42); /* untouched on failure */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_size_has_a_unit_or_none),
		cmocka_unit_test(what_is_no_size_is_refused),
	};

	return cmocka_run_group_tests_name("layers/size", tests, NULL, NULL);
}
