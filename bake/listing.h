/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listing.h - what a step read, name by name, so that it can be said later
 * which file made the step run again.
 *
 * A listing is kept with the step as a blob: pairs of a path and of words about
 * what is there, each ended by a NUL, as sources are walked. It is no part of a
 * key.
 *
 *	listing  = mark { path NUL words NUL }      mark: "/" NUL "2" NUL
 *	words    = mode ", " size " bytes, " digest tail      a file
 *	         | mode ", a directory" tail
 *	         | mode ", a fifo" tail | mode ", a device " major ":" minor tail
 *	         | "a link to " target tail
 *	         | "the file " path tail            listed before, and as what
 *	tail     = [ ", attributes " digest ] [ ", owner " uid ":" gid ]
 *
 * A file's digest is of all that it is but its owner; 12 hex digits of it are
 * told. Attributes are those of xattrs_priv.h, where there are any, and owners
 * are an image's. Paths are those in the context, without a slash in front, or
 * with one those in an image. Older listings have no mark and no tails; they may have that slash,
 *and a directory that was copied by its content.
 */
#pragma once

#include "bake/context.h"
#include "layers/base/json.h"

#define LISTING_BYTES_MAX ((size_t)256 * 1024 * 1024) /* of a COPY of CONTEXT_ENTRIES_MAX names */

/* The mark, where there is nothing yet; listing_read() begins by itself. */
int listing_begin(struct buf *list, struct err *err) MUST_CHECK;

/*
 * Append what sources name to a list, which may have others already.
 * ERR_UNAVAILABLE when they no longer have the digest `content`; NULL: any will do.
 */
int listing_read(const struct context_sources *sources, const struct digest *content,
		 const struct cancel *cancel, struct buf *list, struct err *err) MUST_CHECK;

/* Durable when it returns 0. */
int listing_keep(struct store *store, struct str list, struct digest *out, struct err *err)
	MUST_CHECK;

/*
 * Append to differences (differences.h) the names that are not in a list what
 * they were in the one that was kept, at most LISTING_DIFFERENCES_MAX. A file's
 * digest is told only where all else is what it was: then its bytes differ.
 */
#define LISTING_DIFFERENCES_MAX ((size_t)100)
int listing_compare(struct store *store, const struct digest *kept, struct str now,
		    json_t *differences, struct err *err) MUST_CHECK;
