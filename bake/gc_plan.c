/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/gc_plan.h"

#include "bake/image.h"
#include "layers/base/array.h"
#include "layers/base/clock.h"
#include "layers/step.h"
#include "layers/use.h"
#include "registry/tag.h"

static int gc_plan_tag(void *ctx, struct str reference, const struct tag *tag, struct err *err)
{
	struct gc_plan *plan = ctx;

	if (gc_versions_names(&plan->versions, reference))
		return 0;
	if (digest_set_add(&plan->tagged, &tag->target, err) < 0 ||
	    digest_set_add(&plan->tagged, &tag->manifest, err) < 0)
		return -1;
	return 0;
}

struct gc_reading {
	struct store *store;
	struct gc_plan *plan;
};

static int gc_plan_image(void *ctx, const struct image *image, struct err *err)
{
	const struct gc_reading *reading = ctx;
	struct gc_plan *plan = reading->plan;
	struct gc_image *out;
	int64_t used_ms = 0;

	if (array_make_room(&plan->images, sizeof(*out), plan->image_count, GC_IMAGES_MAX, "images",
			    err) < 0 ||
	    use_find(reading->store, &image->manifest, &used_ms, err) < 0)
		return -1;
	out = &plan->images[plan->image_count++];
	*out = (struct gc_image){
		.manifest = image->manifest,
		.slug = str_dup(image->slug),
		.baked_ms = image->baked_ms,
		.bytes = image->size,
		.used_ms = used_ms > image->baked_ms ? used_ms : image->baked_ms,
	};
	return 0;
}

static int gc_plan_step(void *ctx, const struct step_record *record, struct err *err)
{
	struct gc_plan *plan = ctx;

	if (array_make_room(&plan->steps, sizeof(*plan->steps), plan->step_count, DIGEST_SET_MAX,
			    "steps", err) < 0)
		return -1;
	plan->steps[plan->step_count++] = (struct gc_step){
		.key = record->key,
		.blob = record->blob,
		.at_ms = record->created_ms,
		.bytes = record->blob_size,
	};
	return 0;
}

static int gc_plan_read(struct meta *meta, struct store *store, struct gc_plan *plan,
			struct err *err)
{
	struct gc_reading reading = {store, plan};

	if (gc_versions_images(&plan->versions, &plan->tagged, err) < 0 ||
	    tag_each(meta, gc_plan_tag, plan, err) < 0 ||
	    image_each(meta, gc_plan_image, &reading, err) < 0)
		return -1;
	return step_each(meta, gc_plan_step, plan, err);
}

static int gc_plan_by_slug(const void *a, const void *b)
{
	const struct gc_image *left = a;
	const struct gc_image *right = b;
	int order = strcmp(left->slug, right->slug);

	if (order == 0)
		order = (left->baked_ms < right->baked_ms) - (left->baked_ms > right->baked_ms);
	return order ? order : memcmp(&left->manifest, &right->manifest, sizeof(left->manifest));
}

static bool gc_policy_names(const struct gc_policy *policy, const struct digest *manifest)
{
	for (size_t i = 0; i < policy->image_count; i++) {
		if (digest_equal(&policy->images[i], manifest))
			return true;
	}
	return false;
}

static void gc_plan_judge_images(struct gc_plan *plan, const struct gc_policy *policy,
				 int64_t now_ms)
{
	int64_t rank = 0;

	if (plan->image_count > 0)
		qsort(plan->images, plan->image_count, sizeof(*plan->images), gc_plan_by_slug);
	for (size_t i = 0; i < plan->image_count; i++) {
		struct gc_image *image = &plan->images[i];

		rank = i > 0 && strcmp(image->slug, image[-1].slug) == 0 ? rank + 1 : 0;
		image->named = gc_policy_names(policy, &image->manifest);
		image->goes = !digest_set_has(&plan->tagged, &image->manifest) &&
			      (image->named || policy->all || rank >= policy->keep ||
			       now_ms - image->used_ms >= policy->unused_ms);
	}
}

/* Which steps images need that stay, and which those that go. */
static int gc_plan_sort_steps(struct meta *meta, struct gc_plan *plan, struct err *err)
{
	static const struct digest none;

	for (size_t i = 0; i < plan->image_count; i++) {
		auto_free struct digest *keys = NULL;
		size_t count = 0;
		struct digest_set *steps = plan->images[i].goes ? &plan->theirs : &plan->needed;

		if (image_find_steps(meta, &plan->images[i].manifest, &keys, &count, err) < 0)
			return -1;
		for (size_t k = 0; k < count; k++) {
			if (!digest_equal(&keys[k], &none) &&
			    digest_set_add(steps, &keys[k], err) < 0)
				return -1;
		}
	}
	return 0;
}

static void gc_plan_judge_steps(struct gc_plan *plan, const struct gc_policy *policy,
				int64_t now_ms)
{
	for (size_t i = 0; i < plan->step_count; i++) {
		struct gc_step *step = &plan->steps[i];

		step->goes = !digest_set_has(&plan->needed, &step->key) &&
			     (policy->all || digest_set_has(&plan->theirs, &step->key) ||
			      now_ms - step->at_ms >= policy->unused_ms);
	}
}

/* What a pass may take, the least recently used first. */
struct gc_candidate {
	int64_t used_ms;
	uint64_t bytes;
	bool *goes;
};

struct gc_candidates {
	struct gc_candidate *at; /* owned */
	size_t count;
};

/* At most the plan's images, or its steps. */
static void gc_candidates_add(struct gc_candidates *candidates, struct gc_candidate candidate)
{
	candidates->at = array_grow(candidates->at, candidates->count, sizeof(*candidates->at));
	candidates->at[candidates->count++] = candidate;
}

static int gc_candidates_compare(const void *a, const void *b)
{
	const struct gc_candidate *left = a;
	const struct gc_candidate *right = b;

	return (left->used_ms > right->used_ms) - (left->used_ms < right->used_ms);
}

/*
 * Take candidates until they have so many bytes, but an eighth of them at
 * least: they share layers, and each pass walks everything.
 */
static void gc_candidates_take(struct gc_candidates *candidates, uint64_t bytes)
{
	uint64_t taken = 0;

	if (candidates->count > 0)
		qsort(candidates->at, candidates->count, sizeof(*candidates->at),
		      gc_candidates_compare);
	for (size_t i = 0; i < candidates->count; i++) {
		if (taken >= bytes && i >= candidates->count / 8)
			break;
		*candidates->at[i].goes = true;
		taken += candidates->at[i].bytes;
	}
	free(candidates->at);
}

static void gc_plan_take_images(struct gc_plan *plan, const struct gc_policy *policy)
{
	struct gc_candidates candidates = {0};

	for (size_t i = 0; policy->images_bytes > 0 && i < plan->image_count; i++) {
		struct gc_image *image = &plan->images[i];

		if (!image->goes && !digest_set_has(&plan->tagged, &image->manifest))
			gc_candidates_add(
				&candidates,
				(struct gc_candidate){image->used_ms, image->bytes, &image->goes});
	}
	gc_candidates_take(&candidates, policy->images_bytes);
}

static void gc_plan_take_steps(struct gc_plan *plan, const struct gc_policy *policy)
{
	struct gc_candidates candidates = {0};

	for (size_t i = 0; policy->steps_bytes > 0 && i < plan->step_count; i++) {
		struct gc_step *step = &plan->steps[i];

		if (!step->goes && !digest_set_has(&plan->needed, &step->key))
			gc_candidates_add(
				&candidates,
				(struct gc_candidate){step->at_ms, step->bytes, &step->goes});
	}
	gc_candidates_take(&candidates, policy->steps_bytes);
}

static bool gc_policy_is_empty(const struct gc_policy *policy)
{
	return policy->image_count == 0 && !policy->all && policy->keep == GC_NEVER &&
	       policy->unused_ms == GC_NEVER && policy->steps_bytes == 0 &&
	       policy->images_bytes == 0;
}

int gc_plan_make(struct store *store, const struct gc_policy *policy, struct gc_plan *out,
		 struct err *err)
{
	auto_gc_plan struct gc_plan plan = {0};
	AUTO(meta) struct meta *meta = NULL;
	int64_t now_ms = clock_now_ms();

	if (!gc_policy_is_empty(policy)) {
		if (meta_begin(store, META_READ, &meta, err) < 0 ||
		    gc_versions_read(meta, policy->keep, &plan.versions, err) < 0 ||
		    gc_plan_read(meta, store, &plan, err) < 0)
			return -1;
		gc_plan_judge_images(&plan, policy, now_ms);
		gc_plan_take_images(&plan, policy);
		if (gc_plan_sort_steps(meta, &plan, err) < 0)
			return -1;
		gc_plan_judge_steps(&plan, policy, now_ms);
		gc_plan_take_steps(&plan, policy);
	}
	*out = plan;
	plan = (struct gc_plan){0};
	return 0;
}

void gc_plan_done(struct gc_plan *plan)
{
	for (size_t i = 0; i < plan->image_count; i++)
		free(plan->images[i].slug);
	free(plan->images);
	free(plan->steps);
	gc_versions_done(&plan->versions);
	digest_set_done(&plan->tagged);
	digest_set_done(&plan->needed);
	digest_set_done(&plan->theirs);
	*plan = (struct gc_plan){0};
}
