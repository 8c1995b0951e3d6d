/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_priv.h - one source of a COPY, walked. Digest and copy are two
 * visitors of the same walk, so the digest covers exactly what is copied.
 *
 * sources_priv.h found it: its path leads through no symlink any more. Below
 * it symlinks are entries and nothing is followed. Directories are visited in
 * byte order of names, the source itself first, with path "". What a filter
 * skips is not there; a directory that it only enters is visited once
 * something below it is taken.
 *
 * ERR_REFUSED for what a context may not hold (devices), by name, and for
 * sockets as sources; below a source sockets are skipped, since no layer holds
 * one. ERR_UNAVAILABLE for a file that changes while it is read; ERR_LIMIT
 * above the ceilings of context.h. Files are not opened unless the visitor
 * does.
 */
#pragma once

#include "bake/ahead_priv.h"
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
	int dirfd;     /* it is in; -1 for the source itself */
	int fd;        /* of directories, and of files by source_open_file(); else -1 */
	bool verified; /* fd was checked against st, and xattrs are read */
	bool known;    /* `what` was set by the visitor's ahead */
	struct digest what;
	const char *target; /* of a symlink */
	const char *twin;   /* a file's path under which it was visited before, or NULL */
	struct xattrs xattrs;
	char *block; /* SOURCE_BLOCK bytes to work with, or NULL */
};

enum source_verdict {
	SOURCE_TAKE,
	SOURCE_ENTER, /* a directory that only counts for what is taken below it */
	SOURCE_SKIP,
};

/* What is skipped is not even looked at; `took` is called for each entry that is taken. */
struct source_filter {
	enum source_verdict (*judge)(void *ctx, const char *path);
	void (*took)(void *ctx);
	void *ctx;
};

struct source_spec {
	int fd;              /* the root that it is in */
	const char *path;    /* in there: absolute, clean, without symlinks */
	const char *written; /* for errors */
	const char *name;    /* the last part of what was written, or of a wildcard's match */
	bool matched;        /* found by a wildcard */
	bool many;           /* there are others beside it */
	bool devices;        /* devices are allowed in it */
	bool whole;          /* a directory's own attributes count; never a root's */
	const struct source_filter *filter; /* or NULL */
	bool opened; /* set by source_walk(): a later failure does not mean that it is missing */
};

struct source_visitor {
	int (*start)(void *ctx, const struct source_spec *source, const struct source_entry *entry,
		     struct err *err);
	int (*finish)(void *ctx, struct err *err); /* or NULL */
	int (*enter)(void *ctx, const struct source_entry *entry, struct err *err);
	int (*leave)(void *ctx, const struct source_entry *entry, struct err *err); /* or NULL */
	ahead_fn *ahead; /* of files below the source, before their turn; or NULL */
	int (*file)(void *ctx, struct source_entry *entry, struct err *err);
	int (*link)(void *ctx, const struct source_entry *entry, struct err *err);
	int (*node)(void *ctx, const struct source_entry *entry,
		    struct err *err);                              /* fifo, device */
	void (*left)(void *ctx, const struct source_entry *entry); /* a socket; or NULL */
	void *ctx;
	const struct cancel *cancel;
};

/* ERR_OS with ENOENT, ENOTDIR or ELOOP for a source that is not there. */
int source_walk(struct source_spec *source, const struct source_visitor *visitor, struct err *err)
	MUST_CHECK;

/*
 * Open a file for reading, check that it is still the one that was looked at,
 * and read its xattrs.
 */
int source_open_file(struct source_entry *entry, struct err *err) MUST_CHECK;

/* The entry of a file that is looked at ahead; source_entry_done() closes it. */
void source_entry_ahead(int dirfd, const char *name, const struct stat *st,
			struct source_entry *out);
void source_entry_done(struct source_entry *entry);

/*
 * Pass on an open file's bytes in blocks at multiples of SOURCE_BLOCK; blocks
 * of zeros are left out, holes or not.
 */
typedef int source_block_fn(void *ctx, uint64_t offset, struct str bytes, struct err *err);
int source_read(const struct source_entry *entry, const struct cancel *cancel, source_block_fn *fn,
		void *ctx, struct err *err) MUST_CHECK;
