/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/buf.h"

#include "layers/base/fd.h"
#include "tests/check.h"

#include <fcntl.h>

static void a_ceiling_is_never_exceeded(void **state)
{
	auto_buf struct buf buf = BUF_INIT(4);
	struct err err = {0};

	(void)state;
	check_ok(buf_add(&buf, STR("abcd"), &err), &err);
	check_err(buf_add(&buf, STR("e"), &err), &err, ERR_LIMIT);
	assert_true(str_equal(buf_str(&buf), STR("abcd")));
	assert_int_equal(buf.ptr[buf.len], '\0');
}

static void text_is_cut_into_all_its_pieces(void **state)
{
	struct str rest = STR("a::b:");
	struct str piece;

	(void)state;
	assert_true(str_cut(&rest, ':', &piece) && str_equal(piece, STR("a")));
	assert_true(str_cut(&rest, ':', &piece) && str_equal(piece, STR("")));
	assert_true(str_cut(&rest, ':', &piece) && str_equal(piece, STR("b")));
	assert_true(str_cut(&rest, ':', &piece) && str_equal(piece, STR("")));
	assert_false(str_cut(&rest, ':', &piece));
	rest = STR("");
	assert_true(str_cut(&rest, ':', &piece) && piece.len == 0);
	assert_false(str_cut(&rest, ':', &piece));
}

static void numbers_are_taken_from_the_front(void **state)
{
	struct str text = STR("007x");
	uint64_t value = 42;

	(void)state;
	assert_true(str_take_number(&text, &value));
	assert_int_equal(value, 7);
	assert_false(str_take_number(&text, &value));
	assert_true(str_equal(text, STR("x")) && value == 7);
	text = STR("18446744073709551615");
	assert_true(str_take_number(&text, &value) && value == UINT64_MAX);
	text = STR("18446744073709551614");
	assert_true(str_take_number(&text, &value) && value == UINT64_MAX - 1);
	text = STR("184467440737095516160000001");
	assert_true(str_take_number(&text, &value) && value == UINT64_MAX && text.len == 0);
}

static void a_number_is_the_whole_text(void **state)
{
	static const char *const wrong[] = {"", "+1", "-1", " 1", "1 ", "0x1", "1.0"};
	uint64_t value = 42;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(str_parse_number(str_of(wrong[i]), &value));
	assert_int_equal(value, 42); /* untouched on failure */
	assert_true(str_parse_number(STR("018"), &value) && value == 18);
	assert_true(str_parse_number(STR("18446744073709551616"), &value) && value == UINT64_MAX);
}

static void blanks_are_trimmed_on_both_sides(void **state)
{
	(void)state;
	assert_true(str_equal(str_trim(STR(" \t a \tb\t ")), STR("a \tb")));
	assert_true(str_equal(str_trim(STR("a\r\n")), STR("a\r\n"))); /* no blanks */
	assert_int_equal(str_trim(STR(" \t")).len, 0);
	assert_int_equal(str_trim(STR("")).len, 0);
}

static void a_byte_is_taken_where_it_is_wanted(void **state)
{
	struct str text = STR("-1");

	(void)state;
	assert_false(str_take_char(&text, '1'));
	assert_true(str_take_char(&text, '-') && str_equal(text, STR("1")));
	assert_true(str_take_char(&text, '1'));
	assert_false(str_take_char(&text, '1'));
}

static void a_file_is_read_to_its_end_or_ceiling(void **state)
{
	auto_close int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	auto_buf struct buf all = BUF_INIT(1 << 20);
	auto_buf struct buf little = BUF_INIT(16);
	struct err err = {0};

	(void)state;
	check_ok(fd_read_all(fd, &all, &err), &err);
	assert_true(all.len > 16 && all.ptr[all.len - 1] == '\n');
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	check_err(fd_read_all(fd, &little, &err), &err, ERR_LIMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ceiling_is_never_exceeded),
		cmocka_unit_test(text_is_cut_into_all_its_pieces),
		cmocka_unit_test(numbers_are_taken_from_the_front),
		cmocka_unit_test(a_number_is_the_whole_text),
		cmocka_unit_test(blanks_are_trimmed_on_both_sides),
		cmocka_unit_test(a_byte_is_taken_where_it_is_wanted),
		cmocka_unit_test(a_file_is_read_to_its_end_or_ceiling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
