/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pusher.h - brings to registries what pushes.h says, one image after the
 * other, while the images are served already.
 *
 * What failed in passing is tried again, as often and as late as a bake is
 * (queue.h). One that was under way when the daemon ended begins anew.
 *
 * Threads: one of its own, from pusher_start() to pusher_stop().
 */
#pragma once

#include "bake/pushes.h"
#include "layers/base/cancel.h"
#include "layers/base/clock.h"

/* Bring one image to one canonical reference. It may take its time. */
typedef int pusher_push_fn(void *ctx, struct str reference, const struct digest *image,
			   const struct cancel *cancel, struct err *err);

struct pusher_options {
	struct store *store;
	pusher_push_fn *push;
	void *push_ctx;
	const struct clock *clock; /* or NULL */
};

struct pusher;
int pusher_start(const struct pusher_options *options, struct pusher **out, struct err *err)
	MUST_CHECK;

/* What is under way is cancelled, and stays to be done. NULL is nothing to stop. */
void pusher_stop(struct pusher *pusher);

/* Look at the table: after a commit that put something there. ctx is the pusher. */
void pusher_wake(void *ctx);
