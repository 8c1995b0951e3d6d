/* SPDX-License-Identifier: Apache-2.0 */
/*
 * await.h - wait for an agent's image, by asking the daemon.
 *
 * Waiting is a long poll: the daemon answers when something has changed. Each
 * change is told on standard error, in a line.
 */
#pragma once

#include "api/call.h"

#define AWAIT_WAIT_S 60 /* as long as the daemon holds a request */

struct await {
	const struct cli *cli;
	const char *agent; /* its slug or its id */
	int64_t version;   /* 0 for the latest */
	json_t *status;    /* owned: the last answer (bake/status.h); NULL before the first */
	char etag[HTTP_ETAG_MAX]; /* of that */
	bool silent;              /* nothing is told */
	char *told;               /* owned: the last line */
};

/* Ask; with wait_s, until the answer differs from the last one. 1 it does, 0 it does not, -1. */
int await_ask(struct await *await, int64_t wait_s, struct err *err) MUST_CHECK;

/* Wait for the next answer that differs, and tell it in a line. */
int await_change(struct await *await, struct err *err) MUST_CHECK;

/* Wait until neither a bake of the version nor a rebake is under way. */
int await_settled(struct await *await, struct err *err) MUST_CHECK;

/* In one line: "bot version 2: [1/3] RUN make". The caller frees it. */
char *await_line(const json_t *status) MUST_CHECK;

/*
 * 0 where the image is ready, or there is none to bake; else the reason, as an
 * error of its kind.
 */
int await_check(const json_t *status, struct err *err) MUST_CHECK;

/* Why a bake failed (bake/fault.h), as our error; prints the tail of its log. Returns -1. */
int await_fail(const json_t *fault, struct err *err);

/* A member of an answer as text; "" where it is no string. */
const char *await_text(const json_t *object, const char *name);

void await_done(struct await *await);

static inline void auto_await_release(struct await *slot)
{
	await_done(slot);
}
#define auto_await AUTO(await)
