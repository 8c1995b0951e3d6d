/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base64.h"
#include "tests/check.h"

#include <string.h>

static void all_lengths_are_decoded(void **state)
{
	static const struct {
		const char *text;
		struct str bytes;
	} cases[] = {
		{"", STR("")},
		{"Zg==", STR("f")},
		{"Zm8=", STR("fo")},
		{"Zm9v", STR("foo")},
		{"Zm9vYg==", STR("foob")},
		{"AAAA", STR("\0\0\0")},
		{"/+8=", STR("\xff\xef")},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char out[BASE64_ROOM(8)];
		size_t len = 42;

		assert_true(base64_decode(str_of(cases[i].text), out, &len));
		assert_true(str_equal((struct str){out, len}, cases[i].bytes));
	}
}

static void what_is_no_base64_is_refused(void **state)
{
	static const char *const wrong[] = {"Z",    "Zg",   "Zg=",  "Zm9vY",
					    "Z===", "====", "Zm9!", "Zm-_"};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char out[BASE64_ROOM(8)];
		size_t len = 42;

		if (base64_decode(str_of(wrong[i]), out, &len))
			fail_msg("%s", wrong[i]);
		assert_int_equal(len, 42); /* untouched on failure */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_lengths_are_decoded),
		cmocka_unit_test(what_is_no_base64_is_refused),
	};

	return cmocka_run_group_tests_name("layers/base64", tests, NULL, NULL);
}
