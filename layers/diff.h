/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff.h - the upper directory of a machine becomes a layer, and a tree.
 *
 * The upper directory is walked once, in byte order of names. What differs from
 * the lower view goes into the tar; what does not (a copied-up file with the
 * same metadata and bytes, a directory that only gained a time) is dropped.
 * Deletions become whiteouts only where the lower view has the name; an opaque
 * directory is compared with what it hides and becomes explicit whiteouts. A
 * directory that leads to a change is always in the tar, with its own owner,
 * mode and xattrs. Hard links inside the upper directory stay links; a tar
 * cannot have one to a layer below, so a file of such a layer that got another
 * name is in the new layer whole, under both names, and linked_bytes says how
 * much that is. Sockets are dropped. Times are whole seconds.
 *
 * A file whose holes are a MiB or more in all is sparse: they are neither read
 * nor written. Holes are what the file system says, in units of 64 KiB, and not
 * zeros; so the same bytes with other holes are another layer, and a file
 * without holes is never sparse, however many zeros it has.
 *
 * Sealing makes the upper directory equal to unpack(the tar): what was dropped
 * is removed, overlay's bookkeeping is normalised, times are set. A sealed
 * directory may be given to tree_place().
 *
 * Not a full diff, and therefore refused: an upper directory with redirects or
 * metacopies. Owners of 65,536 and more are refused with a sentence.
 *
 * Format: pax tar as libarchive writes it (POSIX.1-2017), xattrs as
 * SCHILY.xattr.*, names byte for byte; sparse files as GNU.sparse 1.0.
 */
#pragma once

#include "layers/base/cancel.h"
#include "layers/layer.h"
#include "layers/unpack.h"

#include <stdbool.h>

struct diff_spec {
	int upperfd;
	int lowerfd; /* merged view of everything below, or -1 for nothing */
	enum layer_codec codec;
	/*
	 * NULL; or, for a layer that depends on the bytes alone, a time in
	 * seconds: later ones become it, and blocks of zeros are holes whatever
	 * the file system says.
	 */
	const int64_t *clamp;
	const struct cancel *cancel;
	uint64_t max_entries; /* 0 for UNPACK_ENTRIES_MAX, above which nobody could unpack it */
};

struct diff_result {
	bool empty; /* nothing differs: no layer, info is not set */
	struct layer_info info;
	struct digest content; /* of the tar without times; compares within one store */
	uint64_t linked_bytes; /* copied only because a hard link reaches below */
};

/*
 * Write the difference as a layer and seal the upper directory. The blob is
 * durable when this returns 0; on failure the upper directory is of no use.
 */
int diff_seal(struct store *store, const struct diff_spec *spec, struct diff_result *out,
	      struct err *err) MUST_CHECK;
