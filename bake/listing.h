/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listing.h - what a step read, name by name, so that `hearth why` can say
 * which file made the step run again.
 *
 * A listing is kept with the step as a blob: pairs of a path and of words about
 * what is there, each ended by a NUL, as sources are walked. It is no part of a
 * key.
 *
 * 	listing  = mark { path NUL words NUL }      mark: "/" NUL "2" NUL
 * 	words    = mode ", " size " bytes, " digest tail      a file
 * 	         | mode ", a directory" tail
 * 	         | mode ", a fifo" tail | mode ", a device " major ":" minor tail
 * 	         | "a link to " target tail
 * 	         | "the file " path tail            listed before, and as what
 * 	tail     = [ ", attributes " digest ] [ ", owner " uid ":" gid ]
 *
 * A file's digest covers all but its owner; 12 hex digits of it are shown.
 * Attributes are those of xattrs_priv.h, where there are any, and owners are an
 * image's. Paths are those in the context, without a slash in front, or with
 * one those in an image. Older listings have no mark and no tails; they may
 * have that slash, and a directory that was copied by its content.
 */
#pragma once

#include "bake/context.h"
#include "layers/base/json.h"

#define LISTING_BYTES_MAX ((size_t)256 * 1024 * 1024) /* of a COPY of CONTEXT_ENTRIES_MAX names */

/* The mark, where there is nothing yet; listing_read() begins by itself. */
int listing_begin(struct buf *list, struct err *err) MUST_CHECK;

/*
 * Append what sources name to a list, which need not be empty. ERR_UNAVAILABLE
 * when they no longer have the digest `content`; with NULL that is not checked.
 */
int listing_read(const struct context_sources *sources, const struct digest *content,
		 const struct cancel *cancel, struct buf *list, struct err *err) MUST_CHECK;

/* Durable when it returns 0. */
int listing_keep(struct store *store, struct str list, struct digest *out, struct err *err)
	MUST_CHECK;

/*
 * Append to differences (differences.h) the names of which a list and the one
 * that was kept say different things, at most LISTING_DIFFERENCES_MAX. A file's
 * digest is shown only where all else is equal: then its bytes differ.
 */
#define LISTING_DIFFERENCES_MAX ((size_t)100)
int listing_compare(struct store *store, const struct digest *kept, struct str now,
		    json_t *differences, struct err *err) MUST_CHECK;
