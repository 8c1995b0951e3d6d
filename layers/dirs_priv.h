/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dirs_priv.h - the open directories between a tree's root and the place where
 * entries are being made.
 *
 * A tar lists a directory before what it holds, mostly in depth-first order, so
 * each directory is opened once while the way down is kept open. A directory
 * that is left gets the time back that it had before we worked in it; thus no
 * list of times is kept, whatever the order of entries.
 *
 * No symlink is ever followed by the kernel: a component that is one is read
 * and walked here, where an absolute target starts at the tree's root and ".."
 * leaves a directory that we hold. A target above the root is ERR_CORRUPT.
 */
#pragma once

#include "layers/overlay_priv.h"

#include <stdint.h>
#include <time.h>

#define DIRS_PATH_MAX ((size_t)128 * 1024) /* TREE_DEPTH_MAX names of 255 bytes, and links */
#define DIRS_LINKS_MAX 40                  /* as the kernel */

struct dir_level {
	int fd;
	size_t len;   /* of its path */
	bool touched; /* mtime is to be set when it is left */
	bool implies; /* marked as holding what has no entry */
	struct timespec mtime;
};

struct dirs {
	struct buf path; /* of the deepest level, without symlinks */
	size_t depth;    /* of the deepest level; 0 is the root */
	bool followed;   /* the last dirs_enter() followed a symlink */
	uint64_t left;   /* inodes that may still be made */
	struct dir_level levels[TREE_DEPTH_MAX + 1];
};

/* The tree's root is lent. */
void dirs_init(struct dirs *dirs, int treefd, uint64_t max_inodes);
void dirs_done(struct dirs *dirs);

/* Go to a directory; with make, what is missing is made (0755, root, time 0, marked as implied). */
enum dirs_found {
	DIRS_MISSING,
	DIRS_BLOCKED, /* a part of the path is no directory */
	DIRS_THERE,
};
int dirs_enter(struct dirs *dirs, struct str path, bool make, struct err *err) MUST_CHECK;

/* The directory last entered; the descriptor is lent. */
int dirs_fd(const struct dirs *dirs);

/* Before anything is made or removed in it: note its time. */
int dirs_touch(struct dirs *dirs, struct err *err) MUST_CHECK;

/* Count an inode that is about to be made: ERR_LIMIT. */
int dirs_count(struct dirs *dirs, struct err *err) MUST_CHECK;

/* Step into a subdirectory, whose time shall be mtime. Takes the descriptor. */
int dirs_push(struct dirs *dirs, struct str name, int fd, struct timespec mtime, struct err *err)
	MUST_CHECK;

/* The time that the directory last entered shall have in the end. */
void dirs_set_mtime(struct dirs *dirs, struct timespec mtime);

/* Leave all of them, the root included. */
int dirs_finish(struct dirs *dirs, struct err *err) MUST_CHECK;
