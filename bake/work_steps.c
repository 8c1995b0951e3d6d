/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work_steps.c - the crew's parent: a process that has loaded all libraries, and
 * forks the worker of each step that an asker asks it for (crew.h).
 */
#include "bake/crew.h"
#include "bake/work.h"
#include "layers/base/pass.h"
#include "sandbox/machine.h"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define WORK_HASTEN_MS 4 /* an RCU grace period takes 6 at least */
#define WORK_HASTEN_TIMES 10

/*
 * In the child: take the place of a process that was started with these
 * descriptors; what has their numbers now is the crew's.
 */
static int work_take_fds(int fds[static PASS_FDS_MAX])
{
	for (int i = 0; i < (int)PASS_FDS_MAX && fds[i] >= 0; i++) {
		if (dup2(fds[i], WORK_FD_ASKER + i) < 0)
			return -1;
	}
	(void)setsid();
	return (int)syscall(SYS_close_range, (unsigned)WORK_FDS_END, ~0U, 0U);
}

/* In the parent: send a pidfd, since the worker is no child of the asker. */
static int work_tell_pid(pid_t pid, int os)
{
	struct crew_answer answer = {.os = os};
	auto_close int pidfd = -1;
	struct err ignored;

	if (pid > 0) {
		pidfd = (int)syscall(SYS_pidfd_open, pid, 0U);
		answer.os = pidfd < 0 ? errno : 0;
	}
	return pass_send(WORK_FD_ASKER, &answer, sizeof(answer), &pidfd, answer.os == 0, &ignored);
}

/* Reap workers that have ended; those that still run when we end are left to init. */
static void work_reap(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/*
 * Keep up the effect of machine_hasten() until the next asker comes, or for as
 * long as a worker and its runtime take to start.
 */
static void work_hasten(void)
{
	struct pollfd asker = {.fd = WORK_FD_ASKER, .events = POLLIN};

	for (int i = 0; i < WORK_HASTEN_TIMES; i++) {
		machine_hasten();
		if (poll(&asker, 1, WORK_HASTEN_MS) != 0)
			break;
	}
}

int work_steps(int (*step)(void))
{
	int fds[PASS_FDS_MAX];
	struct err ignored;
	char byte;

	while (pass_receive(WORK_FD_ASKER, &byte, sizeof(byte), fds, &ignored) > 0) {
		pid_t pid = fork();
		int os = pid < 0 ? errno : 0;

		if (pid == 0)
			return work_take_fds(fds) < 0 ? 1 : step();
		for (size_t i = 0; i < PASS_FDS_MAX; i++)
			auto_close_release(&fds[i]);
		/* Before reaping: there is no pidfd of a reaped process. */
		if (work_tell_pid(pid, os) < 0)
			break;
		work_reap();
		work_hasten();
	}
	work_reap();
	return 0;
}
