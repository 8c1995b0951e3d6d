/* SPDX-License-Identifier: Apache-2.0 */
/* gc_priv.h - the parts of a collection. */
#pragma once

#include "bake/gc.h"
#include "layers/meta.h"

/* One plan, carried out, and what it left is swept. Adds to *result. */
int gc_pass(const struct gc_options *options, struct gc_result *result, struct err *err) MUST_CHECK;

/*
 * Remove things, the cheapest to make again first, until the policy's limits
 * hold or nothing is left.
 */
int gc_press(const struct gc_options *options, struct gc_result *result, struct err *err)
	MUST_CHECK;

/*
 * Remove what was not used for longest of all trees, until so many bytes are
 * free: each is made again from its blob.
 */
int gc_press_trees(const struct gc_options *options, uint64_t bytes, struct gc_result *result,
		   struct err *err) MUST_CHECK;

/* Whether no open bake has this id (layers/draft.h). 1, 0 or -1. */
int gc_draft_is_orphan(struct meta *meta, struct str owner, struct err *err) MUST_CHECK;

/* Remove those drafts. Nobody looks for them, so nobody has to be kept out. */
int gc_drop_drafts(struct store *store, struct err *err) MUST_CHECK;
