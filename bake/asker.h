/* SPDX-License-Identifier: Apache-2.0 */
/*
 * asker.h - have a worker do something, and follow its progress.
 *
 * A step is asked for by its key: a worker that runs it already is joined, else
 * one is started. A worker that dies is replaced (ASKER_TRIES times at most),
 * and what it left is swept. An asker that is cancelled leaves; if it was the
 * last one the worker ends the step, and the asker waits until all of it is
 * gone.
 */
#pragma once

#include "bake/crew.h"
#include "bake/task.h"
#include "bake/wire.h"
#include "registry/pull.h"

#define ASKER_TRIES 3
#define ASKER_CALL_TRIES 2   /* a second pull finds what the first one stored */
#define ASKER_LEAVE_MS 10000 /* a worker needs its grace time, and a little more */

typedef void asker_log_fn(void *ctx, struct str bytes);
typedef void asker_progress_fn(void *ctx, const json_t *progress);

struct asker {
	struct store *store;
	const char *worker_path; /* of the program that serves asker_call() */
	struct crew *crew;       /* borrowed; for steps */
	asker_log_fn *log;
	asker_progress_fn *progress; /* of a pull */
	int streamfd;                /* what a call's role has as WORK_FD_STREAM; 0 for none */
	void *ctx;
	const struct cancel *cancel;
};

/*
 * Have the step made; its record is in the store when this returns 0. ERR_STEP
 * with *out_exit_code when the command failed; *out_shared: another bake had
 * started it.
 */
int asker_run_step(const struct asker *asker, const struct task *task, int contextfd,
		   bool *out_shared, int *out_exit_code, struct err *err) MUST_CHECK;

/* A request to a role that works on this store (work_call.h), for the caller to complete. */
json_t *asker_request_new(struct store *store);

/*
 * Have a role serve one request ("pull", "doctor"); no store is needed here.
 * The caller owns *out.
 */
int asker_call(const struct asker *asker, const char *role, const json_t *request, json_t **out,
	       struct err *err) MUST_CHECK;
