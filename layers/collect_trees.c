/* SPDX-License-Identifier: Apache-2.0 */
/* collect_trees.c - trees that nothing leads to. */
#include "layers/base/array.h"
#include "layers/collect_priv.h"
#include "layers/proof.h"
#include "layers/trash_priv.h"
#include "layers/tree_priv.h"

/* Trees of layers that nothing leads to. */
struct orphans {
	const struct collector *collector;
	struct digest *at; /* owned */
	size_t count;
};

static int orphans_consider(void *ctx, const struct digest *diff_id, int64_t at_ms, struct err *err)
{
	struct orphans *orphans = ctx;

	(void)at_ms;
	if (collect_keeps(orphans->collector, diff_id))
		return 0;
	if (array_make_room(&orphans->at, sizeof(*orphans->at), orphans->count, DIGEST_SET_MAX,
			    "trees", err) < 0)
		return -1;
	orphans->at[orphans->count++] = *diff_id;
	return 0;
}

int collect_tree(struct collector *collector, const struct digest *diff_id, uint64_t *out_bytes,
		 struct err *err)
{
	uint64_t bytes = 0;
	int removed = 1;

	*out_bytes = 0;
	if (tree_blocks(collector->store, diff_id, collector->options.cancel, &bytes, err) < 0)
		return -1;
	if (!collector->options.dry_run) {
		if (collect_exclude(collector, err) < 0)
			return -1;
		removed = collect_is_leased(collector, diff_id)
				  ? 0
				  : tree_remove(collector->store, diff_id, err);
		collect_admit(collector);
	}
	if (removed == 1)
		*out_bytes = bytes;
	return removed;
}

static int collect_orphans(struct collector *collector, const struct orphans *orphans,
			   struct err *err)
{
	for (size_t i = 0; i < orphans->count; i++) {
		uint64_t bytes;
		int removed;

		if (cancel_check(collector->options.cancel, err) < 0)
			return -1;
		removed = collect_tree(collector, &orphans->at[i], &bytes, err);
		if (removed < 0)
			return -1;
		collector->result.trees += removed == 1;
		collector->result.tree_bytes += bytes;
	}
	return 0;
}

/* A layer's tar stays with it where the image's config has another name for that, too. */
static int collect_keep_tar(void *ctx, const struct digest *blob, const struct digest *diff_id,
			    struct err *err)
{
	struct collector *collector = ctx;

	return collect_keeps(collector, blob) ? collect_keep(collector, diff_id, err) : 0;
}

int collect_trees(struct collector *collector, struct err *err)
{
	struct orphans orphans = {.collector = collector};
	int result = proof_each(collector->snapshot, collect_keep_tar, collector, err);

	if (result == 0)
		result = tree_each(collector->snapshot, orphans_consider, &orphans, err);
	if (result == 0)
		result = collect_orphans(collector, &orphans, err);
	free(orphans.at);
	if (result < 0 || collector->options.dry_run)
		return result;
	return trash_empty(collector->store, TRASH_ALL, collector->options.cancel, err);
}
