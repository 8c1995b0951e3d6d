/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/proc.h"
#include "tests/check.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int run_shell(const char *script, int out_fd, int *status, struct err *err)
{
	const char *argv[] = {"sh", "-c", script, NULL};
	const struct proc_spec spec = {
		.path = "/bin/sh", .argv = argv, .fds = {-1, out_fd, -1}, .fd_count = 3};
	auto_proc struct proc proc = PROC_INIT;

	if (proc_spawn(&spec, &proc, err) < 0)
		return -1;
	return proc_wait(&proc, 10000, NULL, status, err);
}

static void the_status_is_as_a_shell_has_it(void **state)
{
	struct err err = {0};
	int status = -1;

	(void)state;
	check_ok(run_shell("exit 7", -1, &status, &err), &err);
	assert_int_equal(status, 7);
	check_ok(run_shell("kill -9 $$", -1, &status, &err), &err);
	assert_int_equal(status, 128 + SIGKILL);
}

static void a_child_has_the_listed_descriptors_and_no_other(void **state)
{
	int ends[2];
	struct err err = {0};
	char text[64] = "";
	int status;

	(void)state;
	assert_int_equal(pipe2(ends, 0), 0); /* even what is not close-on-exec stays out */
	check_ok(run_shell("cd /proc/self/fd && set -- * && echo $*", ends[1], &status, &err),
		 &err);
	assert_int_equal(close(ends[1]), 0);
	assert_true(read(ends[0], text, sizeof(text) - 1) > 0);
	/* 3 is the shell's own look at the directory. */
	assert_true(strcmp(text, "0 1 2\n") == 0 || strcmp(text, "0 1 2 3\n") == 0);
	assert_int_equal(close(ends[0]), 0);
}

static void a_child_without_room_for_its_descriptors_is_told_as_such(void **state)
{
	struct rlimit before;
	struct rlimit few;
	struct err err = {0};
	int result;
	int status;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = PROC_FDS_MAX + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	result = run_shell("exit 0", -1, &status, &err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
#ifdef __SANITIZE_THREAD__ /* its vfork() is a fork(), and the child's reason stays in the child \
			    */
	check_ok(result, &err);
	assert_int_equal(status, 127);
#else
	check_err(result, &err, ERR_UNSUPPORTED);
	assert_non_null(strstr(err.text, "ulimit -n"));
#endif
	check_ok(run_shell("exit 0", -1, &status, &err), &err);
}

static void a_program_that_is_not_there_ends_with_127(void **state)
{
	const char *argv[] = {"nothing", NULL};
	const struct proc_spec spec = {
		.path = "/nonexistent/program", .argv = argv, .fds = {-1, -1, -1}, .fd_count = 3};
	auto_proc struct proc proc = PROC_INIT;
	struct err err = {0};
	int status;

	(void)state;
	check_ok(proc_spawn(&spec, &proc, &err), &err);
	check_ok(proc_wait(&proc, 10000, NULL, &status, &err), &err);
	assert_int_equal(status, 127);
	check_err(proc_check_started(status, spec.path, &err), &err, ERR_UNAVAILABLE);
	assert_non_null(strstr(err.text, spec.path));
}

static void a_program_that_ran_was_started(void **state)
{
	struct err err = {0};

	(void)state;
	check_ok(proc_check_started(0, "/bin/true", &err), &err);
	check_ok(proc_check_started(125, "/bin/true", &err), &err);
	check_ok(proc_check_started(128 + SIGKILL, "/bin/true", &err), &err);
	check_err(proc_check_started(126, "/etc/passwd", &err), &err, ERR_UNAVAILABLE);
}

static void waiting_ends_at_the_timeout_and_the_child_goes_on(void **state)
{
	const char *argv[] = {"sleep", "60", NULL};
	const struct proc_spec spec = {
		.path = "/bin/sleep", .argv = argv, .fds = {-1, -1, -1}, .fd_count = 3};
	struct proc proc = PROC_INIT;
	struct err err = {0};
	int status;
	pid_t pid;

	(void)state;
	check_ok(proc_spawn(&spec, &proc, &err), &err);
	check_err(proc_wait(&proc, 10, NULL, &status, &err), &err, ERR_TIMEOUT);
	pid = proc.pid;
	assert_int_equal(kill(pid, 0), 0);
	proc_done(&proc);
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(proc.pidfd, -1);
}

static void a_cancel_ends_the_waiting(void **state)
{
	const char *argv[] = {"sleep", "60", NULL};
	const struct proc_spec spec = {
		.path = "/bin/sleep", .argv = argv, .fds = {-1, -1, -1}, .fd_count = 3};
	auto_proc struct proc proc = PROC_INIT;
	struct cancel cancel;
	struct err err = {0};
	int status;

	(void)state;
	check_ok(cancel_init(&cancel, &err), &err);
	check_ok(proc_spawn(&spec, &proc, &err), &err);
	cancel_raise(&cancel);
	check_err(proc_wait(&proc, -1, &cancel, &status, &err), &err, ERR_CANCELLED);
	cancel_done(&cancel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_status_is_as_a_shell_has_it),
		cmocka_unit_test(a_child_has_the_listed_descriptors_and_no_other),
		cmocka_unit_test(a_child_without_room_for_its_descriptors_is_told_as_such),
		cmocka_unit_test(a_program_that_is_not_there_ends_with_127),
		cmocka_unit_test(a_program_that_ran_was_started),
		cmocka_unit_test(waiting_ends_at_the_timeout_and_the_child_goes_on),
		cmocka_unit_test(a_cancel_ends_the_waiting),
	};

	return cmocka_run_group_tests_name("layers/proc", tests, NULL, NULL);
}
