/* SPDX-License-Identifier: Apache-2.0 */
#include "api/human.h"
#include "tests/check.h"

static void sizes_are_decimal_and_short(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{0, "0 B"},
		{999, "999 B"},
		{1000, "1.0 kB"},
		{999949, "999.9 kB"},
		{999950, "1.0 MB"},
		{68400000, "68.4 MB"},
		{4294967296, "4.3 GB"},
		{UINT64_MAX, "18.4 EB"},
	};
	char text[HUMAN_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(human_size(cases[i].bytes, text), cases[i].text);
}

static void durations_and_ages_are_read_at_a_glance(void **state)
{
	char text[HUMAN_TEXT_MAX];

	(void)state;
	assert_string_equal(human_duration(0, text), "0.0s");
	assert_string_equal(human_duration(59900, text), "59.9s");
	assert_string_equal(human_duration(185000, text), "3m05s");
	assert_string_equal(human_age(0, text), "now");
	assert_string_equal(human_age(1000, text), "1 second ago");
	assert_string_equal(human_age(7200000, text), "2 hours ago");
}

static void a_log_cannot_write_on_the_terminal(void **state)
{
	static const struct {
		const char *raw;
		size_t width;
		const char *shown;
	} cases[] = {
		{"plain", 80, "plain"},
		{"\033[31mred\033[0m", 80, "red"},
		{"\033]0;title\007x", 80, "]0;titlex"},
		{"a\tb\rc\bd\x7f", 80, "a bcd"},
		{"\033[", 80, ""},
		{"\033", 80, ""},
		{"h\xc3\xa9llo", 3, "h\xc3\xa9l"},
		{"\xff\xfe", 80, "\xef\xbf\xbd\xef\xbf\xbd"},
		{"abcdef", 3, "abc"},
		{"\xc2\x9b"
		 "31mx",
		 80, "31mx"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_buf struct buf out = BUF_INIT(1024);
		struct err err = {0};

		check_ok(human_line(str_of(cases[i].raw), cases[i].width, &out, &err), &err);
		assert_string_equal(buf_str(&out).ptr, cases[i].shown);
	}
}

static void foreign_text_is_shown_whole(void **state)
{
	auto_free char *plain = human_text(STR("a\033[31mb\nc\xff"));
	auto_free char *nothing = human_text((struct str){NULL, 0});
	auto_free char *gone = human_text(STR("\033[0m"));

	(void)state;
	assert_string_equal(plain, "abc\xef\xbf\xbd");
	assert_string_equal(nothing, "");
	assert_string_equal(gone, "");
}

static void json_is_a_line_of_ascii(void **state)
{
	AUTO(json) json_t *value = json_pack("[s]", "\033\xc2\x9b\n");
	auto_free char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	assert_non_null(out);
	human_json(value, out);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, "[\"\\u001B\\u009B\\n\"]\n");
}

static void a_column_is_as_wide_as_the_longest_name_within_bounds(void **state)
{
	char endless[2 * HUMAN_NAME_MAX];
	int width = HUMAN_NAME_MIN;

	(void)state;
	memset(endless, 'a', sizeof(endless));
	endless[sizeof(endless) - 1] = '\0';
	width = human_widen(width, "short");
	assert_int_equal(width, HUMAN_NAME_MIN);
	width = human_widen(width, "oci:/a/directory/whose/name/has/fifty/bytes/it/is:1");
	assert_int_equal(width, 51);
	assert_int_equal(human_widen(width, "short"), 51);
	assert_int_equal(human_widen(width, endless), HUMAN_NAME_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_decimal_and_short),
		cmocka_unit_test(durations_and_ages_are_read_at_a_glance),
		cmocka_unit_test(a_log_cannot_write_on_the_terminal),
		cmocka_unit_test(foreign_text_is_shown_whole),
		cmocka_unit_test(json_is_a_line_of_ascii),
		cmocka_unit_test(a_column_is_as_wide_as_the_longest_name_within_bounds),
	};

	return cmocka_run_group_tests_name("api/human", tests, NULL, NULL);
}
