/* SPDX-License-Identifier: Apache-2.0 */
/* adopting.h - a directory that becomes a tree, placed and recorded at once. */
#pragma once

#include "layers/tree.h"
#include "tests/check.h"

static inline void adopt_tree(struct store *store, const struct digest *diff_id, int dirfd,
			      const char *name)
{
	struct err err = {0};
	struct meta *meta;
	int hold = tree_place(store, diff_id, dirfd, name, &err);

	check_ok(hold, &err);
	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(tree_record(meta, store, diff_id, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
	assert_int_equal(close(hold), 0);
}
