/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/mask.h"
#include "tests/check.h"

#define SHOWN_MAX ((size_t)4096)

/* However the text is cut in two and three, what is shown is this. */
static void check_shown(const char *secret, const char *other, const char *text,
			const char *expected)
{
	const size_t len = strlen(text);

	for (size_t cut = 0; cut <= len; cut++) {
		for (size_t step = 1; step <= 2; step++) {
			struct mask mask = MASK_INIT;
			auto_buf struct buf shown = BUF_INIT(SHOWN_MAX);
			struct buf_sink sink = BUF_SINK(&shown);
			size_t next = cut + step < len ? cut + step : len;
			struct err err = {0};

			mask_add(&mask, str_of(secret));
			mask_add(&mask, str_of(other));
			check_ok(mask_write(&mask, (struct str){text, cut}, &sink.sink, &err),
				 &err);
			check_ok(mask_write(&mask, (struct str){text + cut, next - cut}, &sink.sink,
					    &err),
				 &err);
			check_ok(mask_write(&mask, (struct str){text + next, len - next},
					    &sink.sink, &err),
				 &err);
			check_ok(mask_finish(&mask, &sink.sink, &err), &err);
			assert_string_equal(buf_str(&shown).ptr, expected);
			mask_done(&mask);
		}
	}
}

static void a_secret_is_hidden_wherever_the_log_is_cut(void **unused)
{
	(void)unused;
	check_shown("hunter2", "", "a hunter2 b", "a *** b");
	check_shown("hunter2\n", "", "hunter2hunter2", "******");
	check_shown("hunter2", "", "hunter hunte", "hunter hunte");
	check_shown("aaab", "", "aaaaab", "aa***");
	check_shown("hunter2", "", "", "");
}

static void each_line_of_a_key_is_one(void **unused)
{
	(void)unused;
	check_shown("-----BEGIN\r\nfirst\nsecond\n", "", "x second\nfirst y", "x ***\n*** y");
	check_shown("abc\n\nlong enough", "", "abc long enough", "abc ***");
}

static void the_longest_of_several_is_hidden(void **unused)
{
	(void)unused;
	check_shown("token", "token-of-mine", "token token-of-mine token-of", "*** *** ***-of");
}

static void without_secrets_all_is_shown(void **unused)
{
	(void)unused;
	check_shown("", "", "all of it", "all of it");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_secret_is_hidden_wherever_the_log_is_cut),
		cmocka_unit_test(each_line_of_a_key_is_one),
		cmocka_unit_test(the_longest_of_several_is_hidden),
		cmocka_unit_test(without_secrets_all_is_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
