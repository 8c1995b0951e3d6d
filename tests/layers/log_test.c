/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/buf.h"
#include "layers/base/fd.h"
#include "layers/base/log.h"
#include "tests/check.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/* Whether a line that quotes this comes out on standard error, and holds that. */
static bool shows(enum log_level level, const char *module, const char *quoted, const char *held)
{
	auto_buf struct buf text = BUF_INIT(4096);
	auto_close int saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	auto_close int file = memfd_create("stderr", MFD_CLOEXEC);
	struct err err = {0};

	assert_true(saved >= 0 && file >= 0);
	assert_int_equal(dup2(file, STDERR_FILENO), STDERR_FILENO);
	log_write(level, module, "something happened text=%s", quoted);
	assert_int_equal(dup2(saved, STDERR_FILENO), STDERR_FILENO);
	assert_int_equal(lseek(file, 0, SEEK_SET), 0);
	check_ok(fd_read_all(file, &text, &err), &err);
	return text.len > 0 && strstr(text.ptr, held) && strstr(text.ptr, module);
}

static bool is_shown(enum log_level level, const char *module)
{
	return shows(level, module, "a b", "something happened text=a b\n");
}

static void debug_lines_are_of_the_modules_that_were_named(void **state)
{
	(void)state;
	assert_false(is_shown(LOG_DEBUG, "layers"));
	assert_true(is_shown(LOG_WARN, "layers"));
	assert_true(log_set_debug("layers,bake"));
	assert_true(is_shown(LOG_DEBUG, "layers"));
	assert_true(is_shown(LOG_DEBUG, "bake"));
	assert_false(is_shown(LOG_DEBUG, "sandbox"));
	assert_true(log_set_debug("all"));
	assert_true(is_shown(LOG_DEBUG, "sandbox"));
}

static void an_unknown_module_changes_nothing(void **state)
{
	static const char *const wrong[] = {"",       "layer", "layers,", "layers,nothing",
					    "Layers", "1"};

	(void)state;
	assert_true(log_set_debug("registry"));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(log_set_debug(wrong[i]));
	assert_true(is_shown(LOG_DEBUG, "registry"));
	assert_false(is_shown(LOG_DEBUG, "layers"));
}

static void what_a_line_quotes_neither_ends_it_nor_steers_a_terminal(void **state)
{
	(void)state;
	assert_true(shows(LOG_WARN, "layers", "a\nb\033[31m\xc2\x9b\x7f", "text=a?b?[31m???\n"));
	assert_true(shows(LOG_WARN, "layers", "h\xc3\xa9", "text=h\xc3\xa9\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(debug_lines_are_of_the_modules_that_were_named),
		cmocka_unit_test(an_unknown_module_changes_nothing),
		cmocka_unit_test(what_a_line_quotes_neither_ends_it_nor_steers_a_terminal),
	};

	return cmocka_run_group_tests_name("layers/log", tests, NULL, NULL);
}
