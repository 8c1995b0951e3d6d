/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_priv.h - one source of a COPY, walked. Digest and copy are two
 * visitors of the same walk, so what is named is what is copied.
 *
 * A source is cleaned as text ("dir/." is "dir", ".." stops at the root), then
 * resolved in the context by the kernel; symlinks on its way, and itself, are
 * followed inside the root. Below it symlinks are entries and nothing is
 * followed. Directories are visited in byte order of names, the source itself
 * first, with path "".
 *
 * ERR_INVALID for sockets, devices and fifos, by name; ERR_NOT_FOUND for a
 * source that is not there; ERR_UNAVAILABLE for a file that changes under our
 * hands; ERR_LIMIT above the ceilings of context.h.
 */
#pragma once

#include "bake/xattrs_priv.h"
#include "layers/base/cancel.h"

#include <stdint.h>
#include <sys/stat.h>

#define SOURCE_BLOCK ((size_t)128 * 1024)

/* Everything is lent for the time of the call. */
struct source_entry {
	const char *path; /* below the source */
	const char *name; /* the last part; of the source itself as it was written */
	struct stat st;
	int fd;             /* of files and directories, for reading; else -1 */
	const char *target; /* of a symlink */
	const char *twin;   /* a file's path under which it was visited before, or NULL */
	struct xattrs xattrs;
	char *block; /* SOURCE_BLOCK bytes to work with */
};

struct source_visitor {
	int (*enter)(void *ctx, const struct source_entry *entry, struct err *err);
	int (*leave)(void *ctx, const struct source_entry *entry, struct err *err); /* or NULL */
	int (*file)(void *ctx, const struct source_entry *entry, struct err *err);
	int (*link)(void *ctx, const struct source_entry *entry, struct err *err);
	void *ctx;
	const struct cancel *cancel;
};

int source_walk(int contextfd, const char *source, const struct source_visitor *visitor,
		struct err *err) MUST_CHECK;

/*
 * Give a file's bytes in blocks at multiples of SOURCE_BLOCK; blocks of zeros
 * are left out, holes or not.
 */
typedef int source_block_fn(void *ctx, uint64_t offset, struct str bytes, struct err *err);
int source_read(const struct source_entry *entry, const struct cancel *cancel, source_block_fn *fn,
		void *ctx, struct err *err) MUST_CHECK;
