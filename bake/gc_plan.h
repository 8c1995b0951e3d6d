/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gc_plan.h - which images and steps a policy condemns, by the records.
 *
 * The plan is made on a snapshot and checked again when it is carried out: what
 * was tagged, used or leased meanwhile stays.
 */
#pragma once

#include "bake/gc.h"
#include "bake/gc_versions.h"
#include "layers/digest_set.h"
#include "layers/meta.h"

struct gc_image {
	struct digest manifest;
	char *slug; /* owned */
	int64_t baked_ms;
	int64_t used_ms;
	uint64_t bytes; /* with what it shares with others */
	bool named;     /* the policy names it */
	bool goes;
};

struct gc_step {
	struct digest key;
	struct digest blob; /* its layer's, or all zero */
	int64_t at_ms;
	uint64_t bytes; /* of its layer */
	bool goes;
};

struct gc_plan {
	struct gc_image *images; /* owned; a slug's are neighbours, newest first */
	size_t image_count;
	struct gc_step *steps; /* owned */
	size_t step_count;
	struct gc_versions versions; /* the tags of those that go do not count */
	struct digest_set tagged;    /* manifests and indexes, and what versions keep */
	struct digest_set needed;    /* keys of steps of images that stay */
	struct digest_set theirs;    /* of those that go */
};

int gc_plan_make(struct store *store, const struct gc_policy *policy, struct gc_plan *out,
		 struct err *err) MUST_CHECK;
void gc_plan_done(struct gc_plan *plan);

static inline void auto_gc_plan_release(struct gc_plan *slot)
{
	gc_plan_done(slot);
}
#define auto_gc_plan AUTO(gc_plan)
