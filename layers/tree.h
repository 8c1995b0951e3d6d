/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.h - unpacked layers, ready to be stacked by overlayfs.
 *
 * A tree is trees/<hex of the diff id>/, in overlay format, with natural
 * owners (0..65535). It equals unpack(its blob), whether it was unpacked or was
 * the upper directory of a step (diff.h seals it). Trees are a cache: what is
 * lost is made again from the blob.
 *
 * Durability: files of a tree are not synced one by one. Its record says
 * `unsynced` with this boot's id until a syncfs has passed; store_sweep() drops
 * unsynced trees of another boot, so a power cut never leaves a half tree in
 * use. tree_settle() does the syncfs.
 *
 * Invariant: a record without its directory, or the reverse, is a miss.
 */
#pragma once

#include "layers/digest.h"
#include "layers/meta.h"

/* 1 the tree is there and may be mounted, 0 it must be made, -1. */
int tree_find(struct store *store, const struct digest *diff_id, struct err *err) MUST_CHECK;

/*
 * A tree is made in two parts: dirfd/name (same file system, complete) is
 * renamed before the transaction, and recorded in it. tree_place() returns a
 * descriptor to close when the transaction is done; until then nobody sweeps or
 * replaces the directory, and whoever places the same tree waits. Where another
 * process was faster, its tree stays and ours is set aside. Between the two
 * parts it must not be mounted. A directory that was never recorded is swept.
 */
int tree_place(struct store *store, const struct digest *diff_id, int dirfd, const char *name,
	       struct err *err) MUST_CHECK;
int tree_record(struct meta *meta, struct store *store, const struct digest *diff_id,
		struct err *err) MUST_CHECK;

/* Every tree that is recorded, until fn returns non-zero, which is returned. */
typedef int tree_each_fn(void *ctx, const struct digest *diff_id, int64_t at_ms, struct err *err);
int tree_each(struct meta *meta, tree_each_fn *fn, void *ctx, struct err *err) MUST_CHECK;

/*
 * What its files take, in bytes of the file system's blocks; 0 where there is
 * no such directory. What lies deeper than TREE_DEPTH_MAX is not counted.
 */
int tree_blocks(struct store *store, const struct digest *diff_id, const struct cancel *cancel,
		uint64_t *out, struct err *err) MUST_CHECK;

/* syncfs the data directory, and mark every tree of this boot as synced. */
int tree_settle(struct store *store, struct err *err) MUST_CHECK;
