/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_check.h - whether a layer is the tar that it should be, and its tree what
 * that tar unpacks to.
 *
 * The layer is inflated, hashed and, where there is a tree, compared with it.
 * Types, modes, owners, sizes, links, attributes and bytes are; times are not.
 * Meanwhile nobody removes or replaces the tree. A right tree takes no space on
 * the disk: it is read once, and compared while the tar comes (twin_priv.h).
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

struct tree_check_result {
	enum tree_check found;
	uint64_t tar_bytes;  /* that were inflated and hashed */
	uint64_t tree_bytes; /* of files, that were read and compared */
};

/*
 * ERR_NOT_FOUND where the blob is gone; ERR_FULL where a tree looks wrong, and
 * there is no room to unpack the tar beside it and look again. Nothing is left
 * on the disk.
 */
int tree_check(struct store *store, const struct tree_check_spec *spec,
	       struct tree_check_result *out, struct err *err) MUST_CHECK;
