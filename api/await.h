/* SPDX-License-Identifier: Apache-2.0 */
/*
 * await.h - an agent's image as the daemon sees it, waited for.
 *
 * Waiting is a long poll: the daemon answers when something is another than it
 * was. What goes on meanwhile is told on standard error, a line each time.
 */
#pragma once

#include "api/call.h"

#define AWAIT_WAIT_S 60 /* as long as the daemon holds a request */

struct await {
	const struct cli *cli;
	const char *agent; /* its slug or its id */
	int64_t version;   /* 0 for the latest */
	json_t *status;    /* owned: the last answer (bake/status.h); NULL before the first */
	char etag[CALL_ETAG_MAX]; /* of that */
	bool silent;              /* nothing is told */
	char *told;               /* owned: the last line */
};

/* Ask; with wait_s, until the answer is another than the last one. 1 it is, 0, -1. */
int await_ask(struct await *await, int64_t wait_s, struct err *err) MUST_CHECK;

/* The next answer that is another, told in a line. */
int await_change(struct await *await, struct err *err) MUST_CHECK;

/* Until nothing is under way: neither a bake of the version nor a rebake. */
int await_settled(struct await *await, struct err *err) MUST_CHECK;

/* In one line: "bot version 2: [1/3] RUN make". The caller frees it. */
char *await_line(const json_t *status) MUST_CHECK;

/* 0 where the image is ready, or none is wanted; else why not, as an error of that kind. */
int await_check(const json_t *status, struct err *err) MUST_CHECK;

/* Why a bake failed (bake/fault.h), as our error; the tail of its log is told. Returns -1. */
int await_fail(const json_t *fault, struct err *err);

/* A member of an answer as text; "" where it is none. */
const char *await_text(const json_t *object, const char *name);

void await_done(struct await *await);

static inline void auto_await_release(struct await *slot)
{
	await_done(slot);
}
#define auto_await AUTO(await)
