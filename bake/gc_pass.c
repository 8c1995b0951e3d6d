/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gc_pass.c - one plan, carried out: records go in batches, then what nothing
 * leads to any more.
 */
#include "bake/gc_priv.h"

#include "bake/gc_plan.h"
#include "bake/image.h"
#include "bake/roots.h"
#include "bake/tarball.h"
#include "layers/base/clock.h"
#include "layers/punch.h"
#include "layers/step.h"
#include "layers/use.h"
#include "registry/document.h"
#include "registry/outgrown.h"
#include "registry/tag.h"
#include "registry/unrecorded.h"

#define GC_BATCH 256 /* records removed in one transaction, while others wait */

struct gc {
	const struct gc_options *options;
	struct collector *collector;
	struct gc_plan plan;
	struct gc_result result;
	struct digest_set gone;     /* images and keys of steps that went, or would */
	struct digest_set outgrown; /* records of repositories that would (outgrown_name()) */
	struct meta *meta;          /* of the mark; borrowed */
};

static void gc_tell(const struct gc *gc, const struct gc_image *image)
{
	const struct gc_event event = {GC_IMAGE, &image->manifest, image->slug};

	if (gc->options->event)
		gc->options->event(gc->options->event_ctx, &event);
}

/* Check again: 1 it may go, 0 it was used since the plan was made. */
static int gc_image_may_go(struct gc *gc, const struct gc_image *image, struct err *err)
{
	int64_t used_ms = 0;

	if (digest_set_has(&gc->plan.tagged, &image->manifest))
		return 0;
	if (image->named)
		return 1; /* whoever works with it keeps its blobs by a lease */
	if (collect_is_leased(gc->collector, &image->manifest))
		return 0;
	if (use_find(gc->options->store, &image->manifest, &used_ms, err) < 0)
		return -1;
	return used_ms <= image->used_ms;
}

static int gc_drop_image(struct gc *gc, struct meta *meta, struct gc_image *image, struct err *err)
{
	int may = gc_image_may_go(gc, image, err);

	if (may == 1 && meta)
		may = image_remove(meta, &image->manifest, err);
	if (may <= 0)
		return may;
	if (meta)
		use_forget(gc->options->store, &image->manifest);
	gc->result.images++;
	gc_tell(gc, image);
	return digest_set_add(&gc->gone, &image->manifest, err) < 0 ? -1 : 0;
}

static int gc_drop_step(struct gc *gc, struct meta *meta, const struct gc_step *step,
			struct err *err)
{
	int gone = 1;

	if (collect_is_leased(gc->collector, &step->key) ||
	    collect_is_leased(gc->collector, &step->blob))
		return 0;
	if (meta)
		gone = step_remove(meta, &step->key, err);
	if (gone <= 0)
		return gone;
	gc->result.steps++;
	return digest_set_add(&gc->gone, &step->key, err) < 0 ? -1 : 0;
}

/* What was tagged since the plan was made. */
static int gc_tagged_now(void *ctx, struct str reference, const struct tag *tag, struct err *err)
{
	struct gc *gc = ctx;

	(void)reference;
	if (digest_set_add(&gc->plan.tagged, &tag->target, err) < 0 ||
	    digest_set_add(&gc->plan.tagged, &tag->manifest, err) < 0)
		return -1;
	return 0;
}

/* Up to GC_BATCH of the images from *at on; then of the steps. meta is NULL in a dry run. */
static int gc_drop_batch(struct gc *gc, struct meta *meta, size_t *at, struct err *err)
{
	struct gc_plan *plan = &gc->plan;
	size_t left = GC_BATCH;

	if (meta && tag_each(meta, gc_tagged_now, gc, err) < 0)
		return -1;
	for (; left > 0 && *at < plan->image_count; ++*at) {
		left -= plan->images[*at].goes;
		if (plan->images[*at].goes && gc_drop_image(gc, meta, &plan->images[*at], err) < 0)
			return -1;
	}
	for (; left > 0 && *at < plan->image_count + plan->step_count; ++*at) {
		const struct gc_step *step = &plan->steps[*at - plan->image_count];

		left -= step->goes;
		if (step->goes && gc_drop_step(gc, meta, step, err) < 0)
			return -1;
	}
	return 0;
}

static int gc_drop_batch_durably(struct gc *gc, size_t *at, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;

	if (collect_exclude(gc->collector, err) < 0 ||
	    meta_begin(gc->options->store, META_WRITE, &meta, err) < 0 ||
	    gc_drop_batch(gc, meta, at, err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}

static bool gc_plan_is_carried_out(const struct gc_plan *plan, size_t at)
{
	for (; at < plan->image_count; at++) {
		if (plan->images[at].goes)
			return false;
	}
	for (; at < plan->image_count + plan->step_count; at++) {
		if (plan->steps[at - plan->image_count].goes)
			return false;
	}
	return true;
}

static int gc_drop_records(struct gc *gc, struct err *err)
{
	size_t at = 0;

	while (!gc_plan_is_carried_out(&gc->plan, at)) {
		int result;

		if (cancel_check(gc->options->cancel, err) < 0)
			return -1;
		result = gc->options->dry_run ? gc_drop_batch(gc, NULL, &at, err)
					      : gc_drop_batch_durably(gc, &at, err);
		collect_admit(gc->collector);
		if (result < 0)
			return -1;
	}
	return 0;
}

struct gc_contexts {
	struct gc *gc;
	struct meta *meta;
	int64_t now_ms;
	struct digest_set kept; /* by versions */
};

/* A context that came as a tar: no image needs it, but a bake of its version does. */
static int gc_drop_context(void *ctx, const struct tarball_info *info, struct err *err)
{
	const struct gc_contexts *contexts = ctx;
	struct gc *gc = contexts->gc;
	const struct gc_policy *policy = &gc->options->policy;

	if ((!policy->all && contexts->now_ms - info->at_ms < policy->unused_ms) ||
	    digest_set_has(&contexts->kept, &info->digest))
		return 0;
	if (!gc->options->dry_run && tarball_forget(contexts->meta, &info->digest, err) < 0)
		return -1;
	gc->result.contexts++;
	return digest_set_add(&gc->gone, &info->digest, err) < 0 ? -1 : 0;
}

static int gc_read_contexts(struct gc_contexts *contexts, struct err *err)
{
	auto_gc_versions struct gc_versions versions = {.keep = 0};

	if (gc_versions_read(contexts->meta, contexts->gc->options->policy.keep, &versions, err) <
	    0)
		return -1;
	return gc_versions_contexts(contexts->meta, &versions, &contexts->kept, err);
}

static int gc_drop_contexts_in(struct gc *gc, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	bool dry_run = gc->options->dry_run;
	struct gc_contexts contexts = {.gc = gc, .now_ms = clock_now_ms()};
	int result;

	if (!dry_run && collect_exclude(gc->collector, err) < 0)
		return -1;
	if (meta_begin(gc->options->store, dry_run ? META_READ : META_WRITE, &meta, err) < 0)
		return -1;
	contexts.meta = meta;
	result = gc_read_contexts(&contexts, err);
	if (result == 0)
		result = tarball_each(meta, gc_drop_context, &contexts, err);
	digest_set_done(&contexts.kept);
	if (result < 0)
		return -1;
	return gc->result.contexts > 0 && !dry_run ? meta_commit(steal_ptr(&meta), err) : 0;
}

static int gc_drop_contexts(struct gc *gc, struct err *err)
{
	const struct gc_policy *policy = &gc->options->policy;
	int result;

	if (!policy->all && policy->unused_ms == GC_NEVER)
		return 0;
	result = gc_drop_contexts_in(gc, err);
	collect_admit(gc->collector);
	return result;
}

static bool gc_forgets_tag(void *ctx, struct str reference)
{
	const struct gc *gc = ctx;

	return gc->options->dry_run && gc_versions_names(&gc->plan.versions, reference);
}

/* After the tags that lead to them. */
static int gc_drop_outgrown(struct gc *gc, struct err *err)
{
	const struct outgrown_options options = {
		.store = gc->options->store,
		.collector = gc->collector,
		.now_ms = clock_now_ms(),
		.cancel = gc->options->cancel,
		.dry_run = gc->options->dry_run,
		.is_gone = gc_forgets_tag,
		.ctx = gc,
	};

	return outgrown_sweep(&options, &gc->outgrown, &gc->result.records, err);
}

static bool gc_is_outgrown(const struct gc *gc, const struct root *root)
{
	struct digest name;

	outgrown_name(root->name, root->item, &name);
	return digest_set_has(&gc->outgrown, &name);
}

/*
 * Whether a root counts as gone: in a dry run its records are still there; else
 * they were made again since.
 */
static bool gc_is_gone(const struct gc *gc, const struct root *root)
{
	if (!gc->options->dry_run)
		return false;
	if (root->kind == ROOT_TAG)
		return gc_versions_names(&gc->plan.versions, root->name);
	if (root->kind == ROOT_HELD)
		return gc_is_outgrown(gc, root);
	if (root->kind == ROOT_IMAGE || root->kind == ROOT_CONTEXT)
		return digest_set_has(&gc->gone, &root->digest);
	if (root->kind == ROOT_BASE)
		return digest_set_has(&gc->gone, &root->image);
	if (root->kind == ROOT_STEP || root->kind == ROOT_LOG)
		return digest_set_has(&gc->gone, &root->key);
	return false;
}

static int gc_keep_root(void *ctx, const struct root *root, struct err *err)
{
	struct gc *gc = ctx;
	static const struct digest none;
	int orphan = root->kind == ROOT_DRAFT ? gc_draft_is_orphan(gc->meta, root->name, err) : 0;

	if (orphan != 0)
		return orphan < 0 ? -1 : 0;
	if (gc_is_gone(gc, root) ||
	    (root->kind == ROOT_VARIANT && !collect_keeps(gc->collector, &root->diff_id)))
		return 0;
	if (collect_keep(gc->collector, &root->digest, err) < 0)
		return -1;
	if (root->kind == ROOT_TAG)
		return collect_keep(gc->collector, &root->image, err);
	if (!digest_equal(&root->diff_id, &none))
		return collect_keep(gc->collector, &root->diff_id, err);
	return 0;
}

static int gc_forget_batch(struct gc *gc, const struct gc_versions *versions, size_t *at,
			   struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;

	if (cancel_check(gc->options->cancel, err) < 0 ||
	    meta_begin(gc->options->store, META_WRITE, &meta, err) < 0 ||
	    gc_versions_forget(meta, versions, at, GC_BATCH, err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}

/* Take tags and images from old versions, so that the plan may condemn the images. */
static int gc_forget_versions(struct gc *gc, struct err *err)
{
	auto_gc_versions struct gc_versions versions = {.keep = 0};
	AUTO(meta) struct meta *meta = NULL;
	size_t at = 0;

	if (gc->options->dry_run || gc->options->policy.keep == GC_NEVER)
		return 0;
	if (meta_begin(gc->options->store, META_READ, &meta, err) < 0 ||
	    gc_versions_read(meta, gc->options->policy.keep, &versions, err) < 0)
		return -1;
	meta_abort(steal_ptr(&meta));
	while (versions.name_count > 0 && at < versions.count) {
		if (gc_forget_batch(gc, &versions, &at, err) < 0)
			return -1;
	}
	return 0;
}

static int gc_carry_out(struct gc *gc, struct err *err)
{
	bool dry_run = gc->options->dry_run;

	if ((!dry_run && unrecorded_settle(gc->options->store, gc->options->cancel, err) < 0) ||
	    gc_forget_versions(gc, err) < 0)
		return -1;
	if (gc_plan_make(gc->options->store, &gc->options->policy, &gc->plan, err) < 0 ||
	    gc_drop_records(gc, err) < 0 || gc_drop_contexts(gc, err) < 0 ||
	    (!dry_run && gc_drop_drafts(gc->options->store, err) < 0) ||
	    gc_drop_outgrown(gc, err) < 0 || collect_mark(gc->collector, &gc->meta, err) < 0 ||
	    roots_each(gc->meta, gc_keep_root, gc, err) < 0 ||
	    collect_sweep(gc->collector, &gc->result.collected, err) < 0)
		return -1;
	if (dry_run)
		return 0;
	return punch_store(gc->options->store, gc->options->cancel, &gc->result.punched, err);
}

static void gc_add(struct gc_result *sum, const struct gc_result *more)
{
	sum->images += more->images;
	sum->steps += more->steps;
	sum->contexts += more->contexts;
	sum->records += more->records;
	sum->punched += more->punched;
	sum->collected.blobs += more->collected.blobs;
	sum->collected.chunks += more->collected.chunks;
	sum->collected.chunk_bytes += more->collected.chunk_bytes;
	sum->collected.trees += more->collected.trees;
	sum->collected.tree_bytes += more->collected.tree_bytes;
	sum->collected.chunks_left |= more->collected.chunks_left;
	sum->collected.held_back |= more->collected.held_back;
}

int gc_pass(const struct gc_options *options, struct gc_result *result, struct err *err)
{
	const struct collect_options collect = {
		.names = document_names, .cancel = options->cancel, .dry_run = options->dry_run};
	struct gc gc = {.options = options};
	int rc = collect_open(options->store, &collect, &gc.collector, err);

	if (rc == 0)
		rc = gc_carry_out(&gc, err);
	gc_add(result, &gc.result);
	collect_close(gc.collector);
	gc_plan_done(&gc.plan);
	digest_set_done(&gc.gone);
	digest_set_done(&gc.outgrown);
	return rc;
}
