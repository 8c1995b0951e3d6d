/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failure.h - the log of a step that failed, found again by the step's key.
 *
 * A step that fails gets no record (step.h), so that it runs again; what it
 * wrote is kept here until the step succeeds. Each key has the log of its last
 * failure, and of more than FAILURES_MAX keys the oldest goes.
 */
#pragma once

#include "layers/meta.h"
#include "layers/step_log.h"

#define FAILURE_TABLE "steps.failed" /* failure.c says what is in it */
#define FAILURES_MAX ((size_t)100)   /* logs of a GiB each, in the worst case */

struct failure {
	struct digest key; /* of the step */
	int64_t at_ms;
	struct step_log log;
};

#define FAILURE_INIT ((struct failure){.log = STEP_LOG_INIT})

int failure_put(struct meta *meta, const struct failure *failure, struct err *err) MUST_CHECK;

/* By the beginning of the key's hex: 1, 0 none, -1; ERR_INVALID when it fits several. */
int failure_find(struct meta *meta, struct str hex, struct failure *out, struct err *err)
	MUST_CHECK;

/* 1 removed, 0 was not there, -1. */
int failure_remove(struct meta *meta, const struct digest *key, struct err *err) MUST_CHECK;

void failure_done(struct failure *failure);

static inline void auto_failure_release(struct failure *slot)
{
	failure_done(slot);
}
#define auto_failure AUTO(failure)
