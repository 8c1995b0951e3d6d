/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/child_priv.h"

#include "layers/base/fd.h"
#include "tests/check.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

/* A child says that it has begun, and never ends. */
struct stuck {
	struct cancel cancel;
	int fds[2];
	pid_t pid; /* what it said */
};

static int say_nothing(void *ctx, struct err *err)
{
	(void)ctx;
	(void)err;
	return 0;
}

static int refuse(void *ctx, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "no %s", (const char *)ctx);
}

static int die(void *ctx, struct err *err)
{
	(void)ctx;
	(void)err;
	_exit(3);
}

static int stay(void *ctx, struct err *err)
{
	const struct stuck *stuck = ctx;
	pid_t pid = getpid();

	if (write(stuck->fds[1], &pid, sizeof(pid)) != (ssize_t)sizeof(pid))
		return err_os(err, errno, "say that we began");
	for (;;)
		(void)pause();
}

static void *cancel_when_begun(void *arg)
{
	struct stuck *stuck = arg;

	if (read(stuck->fds[0], &stuck->pid, sizeof(stuck->pid)) != (ssize_t)sizeof(stuck->pid))
		abort();
	cancel_raise(&stuck->cancel);
	return NULL;
}

static void the_childs_answer_is_ours(void **state)
{
	struct err err = {0};
	char name[] = "source";

	(void)state;
	check_ok(child_call(say_nothing, NULL, NULL, &err), &err);
	check_err(child_call(refuse, name, NULL, &err), &err, ERR_NOT_FOUND);
	assert_string_equal(err.text, "no source");
	check_err(child_call(die, NULL, NULL, &err), &err, ERR_OS);
}

static void a_cancel_ends_the_child(void **state)
{
	struct stuck stuck;
	struct err err = {0};
	pthread_t thread;

	(void)state;
	check_ok(cancel_init(&stuck.cancel, &err), &err);
	assert_int_equal(pipe2(stuck.fds, O_CLOEXEC), 0);
	assert_int_equal(pthread_create(&thread, NULL, cancel_when_begun, &stuck), 0);
	check_err(child_call(stay, &stuck, &stuck.cancel, &err), &err, ERR_CANCELLED);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(kill(stuck.pid, 0), -1);
	assert_int_equal(errno, ESRCH); /* dead, and reaped */
	assert_int_equal(close(stuck.fds[0]), 0);
	assert_int_equal(close(stuck.fds[1]), 0);
	cancel_done(&stuck.cancel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_childs_answer_is_ours),
		cmocka_unit_test(a_cancel_ends_the_child),
	};

	return cmocka_run_group_tests_name("sandbox/child", tests, NULL, NULL);
}
