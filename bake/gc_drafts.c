/* SPDX-License-Identifier: Apache-2.0 */
/* gc_drafts.c - what steps made that will be published by no rebake and no rollback. */
#include "bake/gc_priv.h"

#include "bake/bakes.h"
#include "bake/kept.h"
#include "layers/draft.h"

int gc_draft_is_orphan(struct meta *meta, struct str owner, struct err *err)
{
	auto_bakes_record struct bakes_record bake = {0};
	int found;

	if (kept_is_owner(owner))
		return kept_is_orphan(meta, owner, err);
	found = bakes_find(meta, owner, &bake, err);
	return found < 0 ? -1 : found == 0 || !bakes_is_open(bake.state);
}

static int gc_find_orphan(void *ctx, struct str owner, const struct step_record *record,
			  struct err *err)
{
	(void)record;
	return gc_draft_is_orphan(ctx, owner, err);
}

static int gc_drop_orphan(void *ctx, struct str owner, const struct step_record *record,
			  struct err *err)
{
	int orphan = gc_draft_is_orphan(ctx, owner, err);

	if (orphan == 1)
		orphan = draft_remove(ctx, owner, &record->key, err);
	return orphan < 0 ? -1 : 0;
}

/* 1 there are some, 0 none, -1. */
static int gc_has_orphans(struct store *store, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;

	if (meta_begin(store, META_READ, &meta, err) < 0)
		return -1;
	return draft_each(meta, gc_find_orphan, meta, err);
}

int gc_drop_drafts(struct store *store, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	int found = gc_has_orphans(store, err);

	if (found <= 0)
		return found;
	if (meta_begin(store, META_WRITE, &meta, err) < 0 ||
	    draft_each(meta, gc_drop_orphan, meta, err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}
