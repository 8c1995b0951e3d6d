/* SPDX-License-Identifier: Apache-2.0 */
/*
 * maker_job.h - a maker (maker.h) that starts a process for each bake (job.h).
 *
 * It reads the version's spec from the table of versions when the bake begins.
 */
#pragma once

#include "bake/job.h"
#include "bake/maker.h"
#include "bake/pusher.h"

struct maker_job_options {
	struct job_request request; /* what all bakes have in common; the rest is filled in */
	struct pusher *pusher;      /* is told of what is to be pushed; or NULL */
	int64_t timeout_ms;         /* of a whole bake; 0 for none */

	/* The secrets of a bake that begins; NULL: there are none. */
	int (*secrets)(void *ctx, struct secrets *out, struct err *err);
	void *ctx;
};

/* Options are copied; what they borrow outlives the maker. */
struct maker *maker_job_new(const struct maker_job_options *options);
void maker_job_free(struct maker *maker);
