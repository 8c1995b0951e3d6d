/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crew.h - where the workers of a bake's steps come from.
 *
 * Loading the libraries of hearth-worker takes longer than many steps do. So a
 * bake starts it once, in the role "steps", and that process forks a worker for
 * each step. A worker depends only on its askers: it lives on when the bake
 * that started it is gone and others have joined the step.
 *
 * 	asker -> crew   one byte, and descriptors from WORK_FD_ASKER on (work.h)
 * 	crew -> asker   struct crew_answer, and the worker's pidfd
 *
 * The crew ends when its socket is closed.
 */
#pragma once

#include "layers/base/proc.h"

struct crew {
	const char *worker_path; /* borrowed */
	struct proc proc;        /* none until the first step */
	int sockfd;
};

#define CREW_INIT(path) ((struct crew){.worker_path = (path), .proc = PROC_INIT, .sockfd = -1})

struct crew_answer {
	int os; /* errno where no worker was forked, else 0 */
};

/*
 * Have a worker forked that gets these descriptors, which stay the caller's. It
 * does not wait: whoever holds the other end of the first descriptor hears from
 * the worker, or sees its end. ERR_UNAVAILABLE where worker_path cannot be
 * started.
 */
int crew_fork(struct crew *crew, const int *fds, size_t fd_count, struct err *err) MUST_CHECK;

/*
 * Wait until the worker that was forked last has ended; past the timeout it
 * lives on. A crew that died takes no worker with it, and the next crew_fork()
 * starts another; -1 where there never was one.
 */
int crew_wait(struct crew *crew, int timeout_ms, struct err *err) MUST_CHECK;

void crew_close(struct crew *crew);
