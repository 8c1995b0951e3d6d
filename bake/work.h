/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work.h - the roles of hearth-worker and hearth-puller: a step that runs, what
 * a step would read of images, an image that is pulled or pushed, a registry
 * that is asked what it has, layers that change their codec, a context's tar, a
 * host that is examined. Each serves one request and ends. A step's worker is
 * forked by a process that has loaded everything (crew.h).
 *
 * A role is started with these descriptors; those it does not have are
 * /dev/null:
 *
 *	3  the asker that started it (wire.h)
 *	4  step: the socket on which other askers join
 *	   others: what the user's stream is, where a request says so
 *	5  step: the key's lock, held for as long as the process lives
 *	6  step: the context that COPY reads
 */
#pragma once

#include "layers/base/buf.h"

#define WORK_FD_ASKER 3
#define WORK_FD_LISTENER 4
#define WORK_FD_STREAM 4
#define WORK_FD_LOCK 5
#define WORK_FD_CONTEXT 6
#define WORK_FDS_END 7

/* The one request that a role is started for. */
int work_receive(struct buf *out, struct err *err) MUST_CHECK;

/* Trees have owners and devices, and machines mounts: both are root's to make. */
int work_need_root(struct err *err) MUST_CHECK;

/* Each returns its exit code; errors were sent to the asker. */
int work_step(void);
/* Fork a worker that calls step for each request (crew.h), until the socket is closed. */
int work_steps(int (*step)(void));
int work_pull(void);
int work_convert(void);
int work_check(void);
int work_context(void);
int work_export(void);
int work_push(void);
int work_survey(void);
int work_doctor(void);
int work_list(void);
