/* SPDX-License-Identifier: Apache-2.0 */
/* userns_test.c - what holds a namespace open shares our memory, and runs none of our handlers. */
#include "sandbox/userns_priv.h"

#include "tests/check.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STORM_ROUNDS 30

/* A process group of its own, in which everybody gets signals as fast as they can be sent. */
static struct storm {
	pid_t victim;
	volatile sig_atomic_t strange; /* a handler ran, and not in the victim */
} storm;

static void storm_hear(int sig)
{
	(void)sig;
	if ((pid_t)syscall(SYS_getpid) != storm.victim)
		storm.strange = 1;
}

static pid_t storm_begin(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)signal(SIGUSR1, SIG_IGN);
	while (kill(0, SIGUSR1) == 0)
		continue;
	_exit(1);
}

/* 0, or what went wrong, as an exit status. */
static int storm_run(void)
{
	struct sigaction action = {.sa_handler = storm_hear};
	struct err err = {0};
	pid_t sender;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (setpgid(0, 0) < 0)
		return 2;
	storm.victim = getpid();
	(void)sigaction(SIGUSR1, &action, NULL);
	sender = storm_begin();
	for (int i = 0; i < STORM_ROUNDS && !storm.strange; i++) {
		int fd = userns_open(USERNS_FIRST, &err);

		if (fd < 0)
			return 3;
		(void)close(fd);
	}
	(void)kill(sender, SIGKILL);
	while (waitpid(sender, NULL, 0) < 0 && errno == EINTR)
		continue;
	if (waitpid(-1, NULL, 0) >= 0 || errno != ECHILD)
		return 4;
	return storm.strange ? 5 : 0;
}

static void signals_reach_nobody_who_shares_our_memory(void **state)
{
	int status = 0;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(storm_run());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signals_reach_nobody_who_shares_our_memory),
	};

	return cmocka_run_group_tests_name("sandbox/userns", tests, NULL, NULL);
}
