/* SPDX-License-Identifier: Apache-2.0 */
/* gc.c - a collection: one pass by the policy, and more while space is short. */
#include "bake/gc_priv.h"

#define LOG_MODULE "bake"
#include "layers/base/log.h"
#include "layers/reserve.h"

#include <sys/statvfs.h>

#define GC_ELBOW_BYTES ((uint64_t)16 * 1024 * 1024) /* a pass writes less */

/* What was given up, or an older store has none of. */
static void gc_renew_reserve(const struct gc_options *options)
{
	struct err why;

	if (!options->dry_run && reserve_make(options->store, &why) < 0)
		log_debug("no reserve why=\"%s\"", why.text);
}

/*
 * To remove a record or a blob takes space: on a full disk the reserve gives
 * it, and removed trees do.
 */
static int gc_pass_on_full(const struct gc_options *options, struct gc_result *out, struct err *err)
{
	struct err why;

	if (gc_pass(options, out, err) == 0)
		return 0;
	if (err->kind != ERR_FULL || options->dry_run)
		return -1;
	if (reserve_give_up(options->store, &why) < 0 ||
	    gc_press_trees(options, GC_ELBOW_BYTES, out, &why) < 0) {
		*err = why;
		return -1;
	}
	return gc_pass(options, out, err);
}

/* Of what a process that was killed had made, its lease holds back the first pass. */
static int gc_pass_all(const struct gc_options *options, struct gc_result *out, struct err *err)
{
	if (gc_pass_on_full(options, out, err) < 0)
		return -1;
	return out->collected.held_back ? gc_pass(options, out, err) : 0;
}

static int gc_collect(const struct gc_options *options, struct gc_result *out, struct err *err)
{
	const struct gc_policy *policy = &options->policy;

	if (gc_pass_all(options, out, err) < 0 &&
	    (err->kind != ERR_FULL || policy->min_free_bytes == 0))
		return -1; /* trees can be removed even on a full disk */
	if (policy->max_bytes == UINT64_MAX && policy->min_free_bytes == 0)
		return 0;
	return gc_press(options, out, err);
}

int gc_run(const struct gc_options *options, struct gc_result *out, struct err *err)
{
	int result;

	*out = (struct gc_result){0};
	result = gc_collect(options, out, err);
	gc_renew_reserve(options);
	return result;
}

/* So many bytes free, if that much can go. What was freed, or -1: it was cancelled. */
static int64_t gc_free(struct store *store, const struct gc_policy *policy, uint64_t wanted,
		       const struct cancel *cancel, struct err *err)
{
	struct gc_options options = {
		.store = store, .policy = policy ? *policy : GC_POLICY_INIT, .cancel = cancel};
	struct gc_result result;
	struct err why;
	uint64_t freed;

	options.policy.min_free_bytes = wanted;
	if (gc_run(&options, &result, &why) < 0 && why.kind == ERR_CANCELLED) {
		*err = why;
		return -1;
	}
	freed = result.collected.tree_bytes + result.cache_bytes + result.punched;
	log_debug("made room bytes=%ju", (uintmax_t)freed);
	return (int64_t)freed;
}

struct gc_room {
	uint64_t size; /* of the file system */
	uint64_t unused;
	uint64_t wanted; /* by the policy; without one a part of the size */
};

static int gc_look(struct store *store, const struct gc_policy *policy, struct gc_room *out,
		   struct err *err)
{
	struct statvfs fs;

	if (fstatvfs(store_dirfd(store, STORE_ROOT), &fs) < 0)
		return err_os(err, errno, "look at the file system of %s", store_path(store));
	out->size = (uint64_t)fs.f_blocks * fs.f_frsize;
	out->unused = (uint64_t)fs.f_bavail * fs.f_frsize;
	out->wanted = policy ? policy->min_free_bytes : 0;
	if (out->wanted == 0) {
		out->wanted = out->size / 100 * GC_FREE_PERCENT;
		if (out->wanted > GC_FREE_BYTES)
			out->wanted = GC_FREE_BYTES;
	}
	return 0;
}

int gc_make_room(struct store *store, const struct gc_policy *policy, const struct cancel *cancel,
		 struct err *err)
{
	struct gc_room room;

	if (gc_look(store, policy, &room, err) < 0)
		return -1;
	if (room.unused >= room.wanted)
		return 0;
	return gc_free(store, policy, room.wanted, cancel, err) < 0 ? -1 : 0;
}

int gc_make_more_room(struct store *store, const struct gc_policy *policy,
		      const struct cancel *cancel, struct err *err)
{
	struct gc_room room;
	uint64_t least;
	int64_t freed;

	if (gc_look(store, policy, &room, err) < 0)
		return -1;
	least = room.size / 100 * GC_MORE_PERCENT;
	freed = gc_free(store, policy, room.wanted > least ? room.wanted : least, cancel, err);
	return freed < 0 ? -1 : freed > 0;
}
