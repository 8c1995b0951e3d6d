/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/crew.h"

#include "bake/work.h"
#include "layers/base/pass.h"

#include <poll.h>
#include <sys/socket.h>

#define CREW_END_MS 10000 /* it has nothing to do but to exit */
#define CREW_TRIES 2      /* one that died while idle is replaced */

static int crew_start(struct crew *crew, struct err *err)
{
	static const char *const argv[] = {"hearth-worker", "steps", NULL};
	/* Workers' descriptors are taken from the start, so nothing else gets their numbers. */
	struct proc_spec spec = {
		.path = crew->worker_path,
		.argv = argv,
		.fds = {-1, -1, STDERR_FILENO, -1, -1, -1, -1},
		.fd_count = WORK_FDS_END,
		.new_session = true,
	};
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_os(err, errno, "make a socket");
	auto_close int ours = ends[0];
	auto_close int theirs = ends[1];

	spec.fds[WORK_FD_ASKER] = theirs;
	if (proc_spawn(&spec, &crew->proc, err) < 0)
		return -1;
	crew->sockfd = steal_fd(&ours);
	return 0;
}

/* ERR_UNAVAILABLE where it could not be started. */
static int crew_end(struct crew *crew, struct err *err)
{
	int status = 0;

	auto_close_release(&crew->sockfd);
	crew->sockfd = -1;
	if (crew->proc.pid > 0 && proc_wait(&crew->proc, CREW_END_MS, NULL, &status, err) < 0)
		proc_done(&crew->proc);
	return proc_check_started(status, crew->worker_path, err);
}

int crew_fork(struct crew *crew, const int *fds, size_t fd_count, struct err *err)
{
	for (int try = 0; try < CREW_TRIES; try++) {
		if (crew->proc.pid == 0 && crew_start(crew, err) < 0)
			return -1;
		if (pass_send(crew->sockfd, "", 1, fds, fd_count, err) == 0)
			return 0;
		if (err->kind != ERR_UNAVAILABLE || crew_end(crew, err) < 0)
			return -1;
	}
	return err_set(err, ERR_UNAVAILABLE, "%s does not stay", crew->worker_path);
}

/* Whether there is something to be read before the time is over. */
static bool crew_poll(int fd, int timeout_ms)
{
	struct pollfd wake = {.fd = fd, .events = POLLIN};
	int n;

	do {
		n = poll(&wake, 1, timeout_ms);
	} while (n < 0 && errno == EINTR);
	return n > 0;
}

int crew_wait(struct crew *crew, int timeout_ms, struct err *err)
{
	struct crew_answer answer;
	int fds[PASS_FDS_MAX];
	int got;

	if (!crew_poll(crew->sockfd, timeout_ms))
		return crew_end(crew,
				err); /* or its late answer would be taken for the next request's */
	got = pass_receive(crew->sockfd, &answer, sizeof(answer), fds, err);
	if (got < 0)
		return -1;
	if (got == 0)
		return crew_end(crew, err);
	if (answer.os != 0)
		return err_os(err, answer.os, "start a step's worker");
	(void)crew_poll(fds[0], timeout_ms);
	auto_close_release(&fds[0]);
	return 0;
}

void crew_close(struct crew *crew)
{
	struct err ignored;

	if (crew_end(crew, &ignored) < 0)
		return; /* reported when the crew was needed */
}
