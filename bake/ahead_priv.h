/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ahead_priv.h - the entries of a directory, looked at before their turn and
 * on all cores, so that whoever visits them in order finds the work done.
 *
 * Threads: one caller; others are started where there is enough to do, and wait
 * between two calls.
 */
#pragma once

#include "layers/digest.h"

#include <sys/stat.h>

#define AHEAD_NAMES ((size_t)1024) /* looked at in one call: 224 KiB */
#define AHEAD_THREADS_MAX ((size_t)8)

struct ahead_entry {
	struct stat st;
	int os;     /* errno of stat, or 0 */
	bool known; /* what it is was found out by fn */
	struct digest what;
};

/*
 * Read a regular file, in any thread. False leaves it to the visitor, who then
 * meets the same failure, if there is one. st becomes the file's stat when it
 * was read.
 */
typedef bool ahead_fn(void *ctx, int dirfd, const char *name, struct stat *st, struct digest *out);

struct ahead;
/* Without fn (NULL) entries are only looked at. */
struct ahead *ahead_new(ahead_fn *fn, void *ctx);
void ahead_free(struct ahead *ahead);

/* At most AHEAD_NAMES names. out has a place for each. */
void ahead_look(struct ahead *ahead, int dirfd, const char *const *names, size_t count,
		struct ahead_entry *out);

DEFINE_AUTO(ahead, struct ahead *, ahead_free);
