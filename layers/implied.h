/* SPDX-License-Identifier: Apache-2.0 */
/*
 * implied.h - directories that a layer has no entry of its own for.
 *
 * A layer with only `tmp/x` says nothing of /tmp: who applies it to the layers
 * below leaves /tmp as they have it. But its tree has a directory tmp, and
 * overlayfs shows the highest one's mode and owner. So a tree marks what it
 * only implies, and where trees below say otherwise, a directory that repeats
 * what they say is stacked right above it.
 */
#pragma once

#include "layers/digest.h"

#define IMPLIED_MARK "trusted.hearth.implied"  /* on a directory without an entry */
#define IMPLIED_BELOW "trusted.hearth.implies" /* on all those above it */

/* Trees that are stacked: diff_ids[lowest] is the lowest. */
struct implied_stack {
	int treesfd;
	const struct digest *diff_ids;
	size_t lowest;
};

/*
 * Make dirfd/name for the tree of diff_ids[top]. 1 when it must be stacked, 0
 * when there is nothing to correct and nothing was made, or -1.
 */
int implied_correct(const struct implied_stack *stack, size_t top, int dirfd, const char *name,
		    struct err *err) MUST_CHECK;

/* Make one directory what another is in all but what it holds: owner, mode, xattrs, time. */
int implied_copy(int fd, int fromfd, struct err *err) MUST_CHECK;
