/* SPDX-License-Identifier: Apache-2.0 */
/* tree_priv.h - the removal of trees. */
#pragma once

#include "layers/store_priv.h"
#include "layers/tree.h"

/*
 * Forget a tree and move its directory to the trash, unless somebody is about
 * to record it. 1 removed, 0 there was none, or it is held, -1.
 */
int tree_remove(struct store *store, const struct digest *diff_id, struct err *err) MUST_CHECK;

/* Remove those that a power cut may have damaged, and those that were never recorded. */
int tree_sweep(struct store *store, struct err *err) MUST_CHECK;
