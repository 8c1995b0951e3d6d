/* SPDX-License-Identifier: Apache-2.0 */
/*
 * twin_priv.h - a tree's files, compared with those of its tar as the tar
 * comes, so that each is read once and none is written.
 *
 * A file that cannot be read, or has another name, differs: to learn why, the
 * caller unpacks the tar and compares the two.
 *
 * Memory: 16 bytes for each file, and a block.
 */
#pragma once

#include "layers/base/buf.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct twin_pair;

struct twin {
	int treefd; /* borrowed */
	bool differs;
	uint64_t bytes; /* of the tree, that were read */
	/* the files that were the same: */
	struct twin_pair *pairs; /* owned */
	size_t count;
	/* the file that is compared now: */
	int fd; /* -1 for none */
	off_t at;
	char *block; /* owned */
};

void twin_init(struct twin *twin, int treefd);
void twin_done(struct twin *twin);

/*
 * The next file: its path in the tree, and the empty file of its size
 * (unpack_outline()) that stands for it.
 */
void twin_open(struct twin *twin, const char *path, int freshfd);

/* Its bytes, in order; between them are holes. */
void twin_take(struct twin *twin, struct str bytes, off_t offset);
void twin_close(struct twin *twin, off_t size);

/* All files came. */
void twin_sort(struct twin *twin);

/* Whether the file that `fresh` stands for equals the tree's `inode`. */
bool twin_has(const struct twin *twin, ino_t fresh, ino_t inode);
