/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/thread.h"
#include "tests/check.h"

#include <signal.h>
#include <stdbool.h>

static void *blocks_everything(void *ctx)
{
	bool *blocked = ctx;
	sigset_t mask;

	*blocked = pthread_sigmask(SIG_SETMASK, NULL, &mask) == 0 &&
		   sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGCHLD) == 1;
	return NULL;
}

static void a_thread_leaves_signals_to_the_main_thread(void **state)
{
	bool blocked = false;
	sigset_t before;
	sigset_t after;
	pthread_t thread;
	struct err err = {0};

	(void)state;
	assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &before), 0);
	check_ok(thread_start(&thread, blocks_everything, &blocked, &err), &err);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(blocked);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &after), 0);
	assert_int_equal(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
}

static void cores_are_at_least_one_and_at_most_what_is_asked(void **state)
{
	(void)state;
	assert_int_equal(thread_cores(1), 1);
	assert_in_range(thread_cores(1000), 1, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_leaves_signals_to_the_main_thread),
		cmocka_unit_test(cores_are_at_least_one_and_at_most_what_is_asked),
	};

	return cmocka_run_group_tests_name("layers/thread", tests, NULL, NULL);
}
