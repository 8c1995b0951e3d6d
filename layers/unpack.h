/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack.h - a layer's tar becomes a tree in overlay format.
 *
 * The tar is hostile. Names are resolved by the kernel under the tree's
 * descriptor; an entry that has "..", or whose parents, link target or whiteout
 * lead outside, is ERR_CORRUPT and names the entry. What is absolute starts at
 * the tree's root, as every other unpacker has it: an entry's name, and a
 * parent that is a symlink of the same layer.
 *
 * Whiteouts (`.wh.NAME`) become char devices 0:0 and `.wh..wh..opq` becomes
 * trusted.overlay.opaque; whiteouts hide lower layers only, so one beside an
 * entry of the same name in the same layer makes a directory opaque and is
 * otherwise void, in whatever order they come. Directories that hold a whiteout
 * get an empty trusted.overlay.origin. A whole layer may be opaque: then the
 * mark is on the tree's root, where overlayfs does not look, so a stack of
 * trees has to begin at such a one. Overlay's own xattrs are never taken from a
 * tar. Owners must be below 65,536. Holes of a sparse file stay holes and count
 * for no ceiling but the file's own. Without an entry of its own the root, like
 * any directory that is only implied, is 0755, root's, of time 0, and marked as
 * such (implied.h).
 *
 * Formats: POSIX.1-2017 pax and GNU tar by libarchive; OCI image-spec 1.1,
 * layer.md; Linux Documentation/filesystems/overlayfs.rst.
 */
#pragma once

#include "layers/base/sink.h"

#include <stdint.h>

struct unpack_limits {
	uint64_t max_bytes;   /* of the inflated tar; 0 for UNPACK_BYTES_MAX */
	uint64_t max_entries; /* 0 for UNPACK_ENTRIES_MAX */
};

#define UNPACK_BYTES_MAX ((uint64_t)64 << 30)      /* a larger layer has to be asked for */
#define UNPACK_ENTRIES_MAX ((uint64_t)8 * 1000000) /* inodes can run out, too */
#define UNPACK_FILE_MAX ((int64_t)16 << 40)        /* holes included; the most that ext4 holds */

/*
 * Unpack a tar into the empty directory treefd, in the caller's thread. The
 * source is read to its end, padding included. On failure what was made stays;
 * the caller unpacks into staging.
 */
int unpack_tar(int treefd, struct source *tar, const struct unpack_limits *limits, struct err *err)
	MUST_CHECK;

/*
 * The same for a tar that is no layer: whiteouts are names like others, and all
 * owners are root's.
 */
int unpack_files(int dirfd, struct source *tar, const struct unpack_limits *limits, struct err *err)
	MUST_CHECK;
