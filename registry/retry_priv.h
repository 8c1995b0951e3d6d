/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retry_priv.h - how often and how soon a request is tried again.
 *
 * Waits double from base_ms, with a random half so that many clients of one
 * registry do not come back together; a server's Retry-After is obeyed, up to
 * HTTP_RETRY_AFTER_MAX_MS. A try that ends in ERR_TIMEOUT has waited long, so
 * RETRY_TIMEOUTS of them are enough: one connection may have died unnoticed.
 */
#pragma once

#include "registry/http_priv.h"

#define RETRY_BASE_MS 250
#define RETRY_TIMEOUTS 2

struct retry {
	int tries;   /* in all */
	int base_ms; /* 0 for RETRY_BASE_MS */
	int failures;
	int timeouts; /* of these */
};

/* A try got further than those before: its failures are forgotten. */
static inline void retry_forget(struct retry *retry)
{
	retry->failures = retry->timeouts = 0;
}

/* Whether a later try may get another status. */
bool retry_status(long status);

/*
 * After the failure in *err: wait and return 0; or -1, with *err as it is when
 * the tries are used up, or ERR_CANCELLED. after_ms is the server's
 * Retry-After, or -1.
 */
int retry_wait(struct retry *retry, const struct http *http, int64_t after_ms, struct err *err)
	MUST_CHECK;
