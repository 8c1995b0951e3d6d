/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pusher.h - brings to registries what pushes.h says, while the images are
 * served already.
 *
 * Several are under way at once: PUSHER_PARALLEL in all, PUSHER_HOST_MAX to one
 * registry, so that one that hangs holds up no other, and one to a reference.
 * What takes longer than PUSHER_TIMEOUT_MS has failed in passing. What failed so
 * is tried again, as often and as late as a bake is (queue.h); what a registry
 * has of it already is not sent again. One that was under way when the daemon
 * ended begins anew.
 *
 * Threads: one of its own, from pusher_start() to pusher_stop(), and one for each
 * push.
 */
#pragma once

#include "bake/pushes.h"
#include "layers/base/cancel.h"
#include "layers/base/clock.h"

#define PUSHER_PARALLEL 8
#define PUSHER_HOST_MAX 2
#define PUSHER_TIMEOUT_MS ((int64_t)30 * 60 * 1000) /* 10 GiB at 6 MB/s */

/* Push one image to one canonical reference. It may block for long. */
typedef int pusher_push_fn(void *ctx, struct str reference, const struct digest *image,
			   const struct cancel *cancel, struct err *err);

struct pusher_options {
	struct store *store;
	pusher_push_fn *push; /* by several threads at once */
	void *push_ctx;
	const struct clock *clock; /* or NULL */
	int64_t timeout_ms;        /* of an attempt; 0 for the default */
};

struct pusher;
int pusher_start(const struct pusher_options *options, struct pusher **out, struct err *err)
	MUST_CHECK;

/* The push under way is cancelled, and stays to be done. NULL is ignored. */
void pusher_stop(struct pusher *pusher);

/* Look at the table again, after a commit that added a push. ctx is the pusher. */
void pusher_wake(void *ctx);
