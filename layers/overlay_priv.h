/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overlay_priv.h - how overlayfs and tar layers each write deletions and marks,
 * and which of these a tree may hold.
 *
 * A tree holds whiteouts (char 0:0), trusted.overlay.opaque, and an empty
 * trusted.overlay.origin on every directory that holds a whiteout: without it
 * the kernel takes an unmerged directory for a plain one and lists the
 * whiteouts. No other xattr of overlayfs is ever in a tree, and none in a tar.
 * Directories without an entry are marked (implied.h), which is in no tar either.
 */
#pragma once

#include "layers/base/buf.h"

#include <sys/stat.h>

#define OVERLAY_OPAQUE "trusted.overlay.opaque"
#define OVERLAY_ORIGIN "trusted.overlay.origin"
#define OVERLAY_REDIRECT "trusted.overlay.redirect"
#define OVERLAY_METACOPY "trusted.overlay.metacopy"

#define WHITEOUT_PREFIX ".wh."
#define WHITEOUT_META ".wh..wh." /* aufs' own files; one of them has a meaning */
#define WHITEOUT_OPAQUE ".wh..wh..opq"

#define TREE_DEPTH_MAX ((size_t)256)       /* directories hold a descriptor each on the way down */
#define TREE_OWNER_MAX ((int64_t)65535)    /* a machine's range of ids */
#define TREE_XATTR_MAX ((size_t)64 * 1024) /* XATTR_SIZE_MAX and XATTR_LIST_MAX of the kernel */

bool overlay_is_whiteout(const struct stat *stat);

/* Whether a file of this mode keeps this xattr in trees and tars. */
bool overlay_keeps_xattr(const char *name, mode_t mode);

/* Whether it is overlayfs' own, under either of its prefixes. */
bool overlay_owns_xattr(const char *name);

/* Make a whiteout like all others: root's, of time 0. */
int overlay_dress_whiteout(int dirfd, const char *name, struct err *err) MUST_CHECK;
int overlay_make_whiteout(int dirfd, const char *name, struct err *err) MUST_CHECK;
int overlay_mark_opaque(int fd, struct err *err) MUST_CHECK;
int overlay_mark_origin(int fd, struct err *err) MUST_CHECK;

/* implied.h's marks. */
int overlay_mark_implied(int fd, struct err *err) MUST_CHECK;
int overlay_mark_implies(int fd, struct err *err) MUST_CHECK;
int overlay_unmark_implied(int fd, struct err *err) MUST_CHECK;

/*
 * The canonical form of security.capability: version 3 for the root of the
 * tree's own range (rootid 0) is version 2. Anything else comes back as it is.
 */
#define CAPABILITY_V2_SIZE ((size_t)20)
struct str overlay_capability(struct str value, char v2[static CAPABILITY_V2_SIZE]);
