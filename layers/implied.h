/* SPDX-License-Identifier: Apache-2.0 */
/*
 * implied.h - directories that a layer has no entry of its own for.
 *
 * A layer with only `tmp/x` says nothing of /tmp: applied to the layers below
 * it leaves /tmp as they have it. But its tree has a directory tmp, and
 * overlayfs shows the mode and owner of the highest one. So a tree marks the
 * directories that it only implies, and where trees below have them otherwise,
 * a directory that repeats those is stacked right above the highest such tree.
 */
#pragma once

#include "layers/digest.h"

#define IMPLIED_MARK "trusted.hearth.implied"  /* on a directory without an entry */
#define IMPLIED_BELOW "trusted.hearth.implies" /* on all those above it */

/*
 * Paths that were looked at in higher trees, which hide what lower ones have
 * there. So, when trees are corrected from the highest down, a path that 400
 * layers imply is looked up once and corrected once. Memory: IMPLIED_SEEN_MAX
 * paths; others may be corrected twice, with the same result.
 */
#define IMPLIED_SEEN_MAX ((size_t)256)
struct implied_seen {
	char *paths[IMPLIED_SEEN_MAX]; /* owned, each at its hash's place */
};

void implied_seen_done(struct implied_seen *seen);

/* Trees that are stacked: diff_ids[lowest] is the lowest. */
struct implied_stack {
	int treesfd;
	const struct digest *diff_ids;
	size_t lowest;
	struct implied_seen *seen; /* in these very trees */
};

/*
 * Make dirfd/name for the tree of diff_ids[top]. 1 when it must be stacked, 0
 * when there is nothing to correct and nothing was made, or -1.
 */
int implied_correct(const struct implied_stack *stack, size_t top, int dirfd, const char *name,
		    struct err *err) MUST_CHECK;

static inline void auto_implied_seen_release(struct implied_seen *seen)
{
	implied_seen_done(seen);
}
#define auto_implied_seen AUTO(implied_seen)

/* Give one directory another one's owner, mode, xattrs and time. */
int implied_copy(int fd, int fromfd, struct err *err) MUST_CHECK;
