/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_check.h - whether a layer is the tar that it should be, and its tree what
 * that tar unpacks to.
 *
 * The layer is inflated, hashed and, where there is a tree, unpacked once more
 * beside it; then both are walked. Types, modes, owners, sizes, links, attributes
 * and bytes are compared; times are not. Meanwhile nobody removes or replaces
 * the tree.
 *
 * Threads: one inside, for the unpacking.
 */
#pragma once

#include "layers/base/cancel.h"
#include "layers/digest.h"
#include "layers/store.h"

struct tree_check_spec {
	struct digest blob;
	struct digest diff_id;
	bool tree; /* compare the tree, too, if there is one */
	const struct cancel *cancel;
};

enum tree_check {
	TREE_CHECK_SAME,
	TREE_CHECK_DIFFERS,   /* the tree does */
	TREE_CHECK_OTHER_TAR, /* the blob is not the tar of the diff id */
};

/* ERR_NOT_FOUND where the blob is gone. */
int tree_check(struct store *store, const struct tree_check_spec *spec, enum tree_check *out,
	       struct err *err) MUST_CHECK;
