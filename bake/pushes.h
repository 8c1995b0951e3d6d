/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pushes.h - images on their way to registries, as specs' `push` asks for:
 * table `pushes`.
 *
 * A push is recorded in the transaction that publishes its image, so none is
 * lost and nobody waits for it. A reference has one at most: a later image
 * takes its place. Its record is removed when it is done; one that would fail
 * again stays, with the error, until there is another for its reference.
 *
 * How it goes is told in the same transaction: in the status of the version that
 * it is of (status_push.h), and by image.pushed and image.pushFailed.
 */
#pragma once

#include "layers/digest.h"
#include "layers/meta.h"

#define PUSHES_REFERENCE_MAX ((size_t)4096) /* of a canonical reference */

struct pushes_record {
	char reference[PUSHES_REFERENCE_MAX]; /* canonical */
	struct digest image;
	char bake_id[ID_TEXT_MAX]; /* which made it */
	int64_t attempt;           /* the last that failed, from 1; 0 before the first */
	int64_t retry_ms;          /* not before then */
	bool failed;               /* for good */
	json_t *error;             /* owned: of the last attempt (fault.h), or NULL */
};

/* Add a push, due at once, in place of the reference's earlier one. */
int pushes_put(struct meta *meta, struct str reference, const struct digest *image,
	       struct str bake_id, int64_t now_ms, struct err *err) MUST_CHECK;

/* Whether one may be tried now, if it is due. */
typedef bool pushes_may_fn(void *ctx, const struct pushes_record *record);

/*
 * One that is due and may be tried: 1. Else 0, and *out_next_ms is when the next
 * one is that may, INT64_MAX for never. -1.
 */
int pushes_find_due(struct meta *meta, int64_t now_ms, pushes_may_fn *may, void *ctx,
		    struct pushes_record *out, int64_t *out_next_ms, struct err *err) MUST_CHECK;

/*
 * Record how an attempt went: why is NULL where it is done. Another push that
 * was put meanwhile stays.
 */
int pushes_settle(struct meta *meta, const struct pushes_record *record, const struct err *why,
		  int64_t now_ms, struct err *err) MUST_CHECK;

/* Of a reference: 1, 0 none, -1. */
int pushes_find(struct meta *meta, struct str reference, struct pushes_record *out, struct err *err)
	MUST_CHECK;
void pushes_record_done(struct pushes_record *record);

static inline void auto_pushes_record_release(struct pushes_record *slot)
{
	pushes_record_done(slot);
}
#define auto_pushes_record AUTO(pushes_record)
