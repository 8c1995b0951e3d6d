/* SPDX-License-Identifier: Apache-2.0 */
#include "api/progress.h"
#include "tests/check.h"

#define PIECE_LINES 3000
#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"

/* What a display wrote, and in how many writes. */
struct page {
	struct buf text;
	size_t writes;
};

static ssize_t page_write(void *cookie, const char *bytes, size_t len)
{
	struct page *page = cookie;
	struct err err = {0};

	check_ok(buf_add(&page->text, (struct str){bytes, len}, &err), &err);
	page->writes++;
	return (ssize_t)len;
}

static struct progress *open_plain(struct page *page, bool terminal)
{
	static const cookie_io_functions_t functions = {.write = page_write};
	struct progress *progress = NULL;
	struct err err = {0};

	*page = (struct page){.text = BUF_INIT((size_t)1024 * 1024)};
	check_ok(progress_open_plain(fopencookie(page, "w", functions), terminal, &progress, &err),
		 &err);
	return progress;
}

static void hear(struct progress *progress, enum bake_event_kind kind, struct str text)
{
	const struct bake_event event = {.kind = kind, .step = 1, .of = 2, .text = text};

	progress_event(progress, &event);
}

static void check_page(struct page *page, struct progress *progress, const char *expected)
{
	progress_close(progress);
	assert_string_equal(buf_str(&page->text).ptr, expected);
	buf_done(&page->text);
}

static void a_piece_of_a_log_is_one_write(void **state)
{
	auto_buf struct buf piece = BUF_INIT((size_t)64 * 1024);
	auto_buf struct buf expected = BUF_INIT((size_t)256 * 1024);
	struct page page;
	struct progress *progress = open_plain(&page, false);
	struct err err = {0};

	(void)state;
	for (int i = 0; i < PIECE_LINES; i++) {
		check_ok(buf_addf(&piece, &err, "line %d\n", i), &err);
		check_ok(buf_addf(&expected, &err, "[1/2] line %d\n", i), &err);
	}
	hear(progress, BAKE_LOG, buf_str(&piece));
	assert_int_equal(page.writes, 1);
	check_page(&page, progress, expected.ptr);
}

static void a_line_waits_for_its_end_or_the_steps(void **state)
{
	struct page page;
	struct progress *progress = open_plain(&page, false);

	(void)state;
	hear(progress, BAKE_LOG, STR("a\nb"));
	assert_string_equal(page.text.ptr, "[1/2] a\n");
	hear(progress, BAKE_LOG, STR("c\n\nd"));
	hear(progress, BAKE_STEP_FAILED, STR("exit code 1"));
	check_page(&page, progress, "[1/2] a\n[1/2] bc\n[1/2] d\n[1/2] FAILED exit code 1\n");
}

static void a_cancelled_step_has_not_failed(void **state)
{
	const struct bake_event event = {.kind = BAKE_STEP_FAILED,
					 .step = 1,
					 .of = 2,
					 .text = STR("cancelled"),
					 .cancelled = true};
	struct page page;
	struct progress *progress = open_plain(&page, false);

	(void)state;
	progress_event(progress, &event);
	check_page(&page, progress, "[1/2] CANCELLED\n");
}

static void a_terminal_too_says_that_it_was_cancelled(void **state)
{
	static const cookie_io_functions_t functions = {.write = page_write};
	const struct bake_event event = {.kind = BAKE_STEP_FAILED,
					 .step = 1,
					 .of = 2,
					 .text = STR("cancelled"),
					 .cancelled = true};
	struct page page = {.text = BUF_INIT((size_t)1024 * 1024)};
	struct progress *progress = NULL;
	struct err err = {0};

	(void)state;
	check_ok(progress_open_tty(fopencookie(&page, "w", functions), 80, &progress, &err), &err);
	hear(progress, BAKE_STEP, STR("RUN make"));
	progress_event(progress, &event);
	progress_close(progress);
	assert_non_null(strstr(buf_str(&page.text).ptr, "CANCELLED\n"));
	assert_null(strstr(buf_str(&page.text).ptr, "FAILED"));
	buf_done(&page.text);
}

static void what_has_no_size_shows_none(void **state)
{
	const struct digest digest = {0};
	struct bake_event event = {.kind = BAKE_PULL, .text = STR("named"), .digest = &digest};
	struct page page;
	struct progress *progress = open_plain(&page, false);

	(void)state;
	progress_event(progress, &event);
	event.text = STR("held");
	event.size = 1000;
	progress_event(progress, &event);
	check_page(&page, progress,
		   "[base] named sha256:" ZEROS "\n[base] held sha256:" ZEROS " 1.0 kB\n");
}

static void a_warning_says_what_it_is_of(void **state)
{
	const struct bake_event of_base = {.kind = BAKE_WARNING, .of = 2, .text = STR("odd")};
	struct page page;
	struct progress *progress = open_plain(&page, false);

	(void)state;
	hear(progress, BAKE_WARNING, STR("odd"));
	progress_event(progress, &of_base);
	hear(progress, BAKE_PUSH_WARNING, STR("even"));
	check_page(&page, progress, "[1/2] WARNING odd\n[base] WARNING odd\n[push] WARNING even\n");
}

static void an_endless_line_is_shown_in_pieces(void **state)
{
	static const size_t most = (size_t)64 * 1024;
	auto_buf struct buf piece = BUF_INIT(2 * most);
	struct page page;
	struct progress *progress = open_plain(&page, false);
	struct err err = {0};

	(void)state;
	check_ok(buf_addf(&piece, &err, "%*s\n", (int)most + 1, "x"), &err);
	hear(progress, BAKE_LOG, buf_str(&piece));
	assert_int_equal(page.text.len, strlen("[1/2] \n[1/2] x\n") + most);
	assert_string_equal(page.text.ptr + page.text.len - strlen("\n[1/2] x\n"), "\n[1/2] x\n");
	progress_close(progress);
	buf_done(&page.text);
}

static void a_pipe_gets_every_byte_and_a_terminal_no_escapes(void **state)
{
	struct page page;
	struct progress *progress = open_plain(&page, false);

	(void)state;
	hear(progress, BAKE_LOG, STR("\033[31mred\n"));
	check_page(&page, progress, "[1/2] \033[31mred\n");
	progress = open_plain(&page, true);
	hear(progress, BAKE_STEP, STR("RUN \033[31mred"));
	hear(progress, BAKE_LOG, STR("\033[31mred\n"));
	check_page(&page, progress, "[1/2] RUN red\n[1/2] red\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_piece_of_a_log_is_one_write),
		cmocka_unit_test(a_line_waits_for_its_end_or_the_steps),
		cmocka_unit_test(a_cancelled_step_has_not_failed),
		cmocka_unit_test(a_terminal_too_says_that_it_was_cancelled),
		cmocka_unit_test(what_has_no_size_shows_none),
		cmocka_unit_test(a_warning_says_what_it_is_of),
		cmocka_unit_test(an_endless_line_is_shown_in_pieces),
		cmocka_unit_test(a_pipe_gets_every_byte_and_a_terminal_no_escapes),
	};

	return cmocka_run_group_tests_name("api/progress", tests, NULL, NULL);
}
