/* SPDX-License-Identifier: Apache-2.0 */
/*
 * context.h - what COPY reads, and the digest of what it reads.
 *
 * A context is a directory; so is the root of the image that --from names.
 * sources_priv.h says how sources are found in it, and what hides them. The
 * digest covers names, types, modes, link targets, xattrs and bytes; a
 * context's owners are 0:0 and times do not count, so checkout place, host user
 * and mtime never matter. A mode counts as --chmod makes it. A directory source
 * contributes its content and, below the top, its directories' modes.
 *
 * Only what COPY names is read, and only files that have changed since the last
 * reading. Devices are refused by name, except in an image; sockets are left
 * out. Attributes are user.* and security.capability. A file that changes while
 * it is read is ERR_UNAVAILABLE.
 */
#pragma once

#include "bake/instruction.h"
#include "layers/base/cancel.h"
#include "layers/digest.h"
#include "layers/store.h"

#define CONTEXT_ENTRIES_MAX 5000000 /* entries of one COPY */
#define CONTEXT_DEPTH_MAX 256       /* a descriptor each on both sides of a copy */

/* What one COPY (or a bind mount) reads. Everything is borrowed. */
struct context_sources {
	int fd;                   /* the context, or the root of an image */
	const char *const *paths; /* expanded */
	size_t count;
	const char *const *excludes; /* --exclude */
	size_t exclude_count;
	bool parents;      /* --parents */
	const char *chmod; /* --chmod, checked (mode_priv.h), or NULL */
	bool whole;        /* a directory counts with its own attributes, not only its content */
	bool image; /* fd is an image's: owners count, devices are allowed, no .dockerignore */
	const char *label;   /* an image's name, for errors */
	struct buf *list;    /* NULL, or gets what is read, name by name (listing.h) */
	struct store *store; /* remembers a context's files (shortcut_priv.h); NULL for none */
};

/* ERR_REFUSED for a .dockerignore that is none. */
int context_check(int contextfd, struct err *err) MUST_CHECK;

/*
 * The digest of the sources, in order. ERR_NOT_FOUND names the source as
 * written and the nearest name that exists, or the rule that hides it.
 */
int context_digest(const struct context_sources *sources, const struct cancel *cancel,
		   struct digest *out, struct err *err) MUST_CHECK;
