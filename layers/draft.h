/* SPDX-License-Identifier: Apache-2.0 */
/*
 * draft.h - what the steps of a rebake made, before its image is published.
 *
 * A rebake runs its steps anew, and nobody else may find what they made until
 * its image is there: their records are drafts, kept under the id of the bake,
 * which finds them itself; so after a kill it goes on where it was. They become
 * records (step.h) in the transaction that publishes, and are forgotten where
 * the bake fails.
 *
 * Until then what they name is kept from collection, like that of a record.
 *
 * What they replace may be kept in the same way, to be put back.
 */
#pragma once

#include "layers/step.h"

#define DRAFT_OWNER_MAX ((size_t)64) /* bytes of a bake's id */

/* As step_find() and step_put(). Early cut-off is against what is published. */
int draft_find(struct meta *meta, struct str owner, const struct digest *key, bool with_details,
	       struct step_record *out, struct err *err) MUST_CHECK;
int draft_put(struct meta *meta, struct str owner, struct step_record *record, struct err *err)
	MUST_CHECK;

/*
 * The drafts of these keys become records; the bake's others are dropped. Other
 * results that they replace become the drafts of `kept`, in place of those that
 * it has; "" keeps none.
 */
int draft_publish(struct meta *meta, struct str owner, struct str kept, const struct digest *keys,
		  size_t count, struct err *err) MUST_CHECK;

/*
 * And back: those of these keys that were kept become records again, where what
 * replaced them still is one, or nothing is. The others are dropped.
 */
int draft_restore(struct meta *meta, struct str kept, const struct digest *keys, size_t count,
		  struct err *err) MUST_CHECK;

/* Forget all of a bake's. */
int draft_drop(struct meta *meta, struct str owner, struct err *err) MUST_CHECK;

/* Forget one. 1 removed, 0 was not there, -1. */
int draft_remove(struct meta *meta, struct str owner, const struct digest *key, struct err *err)
	MUST_CHECK;

/*
 * Every draft, details and all, until fn returns non-zero, which is returned.
 * fn may drop the owner's. record and owner are lent.
 */
typedef int draft_each_fn(void *ctx, struct str owner, const struct step_record *record,
			  struct err *err);
int draft_each(struct meta *meta, draft_each_fn *fn, void *ctx, struct err *err) MUST_CHECK;

/* The blobs that a draft names beside its layer, as step_each_log(). */
int draft_each_log(const struct step_record *record, step_log_each_fn *fn, void *ctx,
		   struct err *err) MUST_CHECK;
