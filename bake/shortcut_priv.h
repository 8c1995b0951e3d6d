/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shortcut_priv.h - which files of a context need not be read again.
 *
 * A file whose device, inode, size, mtime, ctime, mode and owner are those of
 * its last reading has not changed since. ctime cannot be set, so new bytes
 * under an old mtime are noticed, and attributes are too.
 *
 * A file that changed shortly before it was read may change once more within
 * the same tick of the clock that stamps files: such a file, or one from the
 * future, is not remembered, and is read again next time.
 *
 * What is kept is a cache: lost or damaged, files are read once more. Nothing
 * is written where nothing was read.
 *
 * Threads: shortcut_find() and shortcut_add() may race.
 * Memory: 96 bytes for each file that was read; what is known already is mapped.
 */
#pragma once

#include "layers/digest.h"
#include "layers/store.h"

#include <sys/stat.h>

#define SHORTCUT_FILES_MAX ((size_t)1 << 20) /* of one context: 96 MiB */
#define SHORTCUT_TABLES_MAX 64 /* contexts; the one that was not used for longest goes first */
#define SHORTCUT_UNUSED_DAYS 30

struct shortcut;

/*
 * Open what is known of the files of this context. With a store of NULL nothing
 * is known or kept.
 */
struct shortcut *shortcut_open(struct store *store, int contextfd);
void shortcut_close(struct shortcut *shortcut);

/* The clock that shortcut_add() wants, in nanoseconds since 1970. */
int64_t shortcut_now(void);

/* The digest of the file, if it has not changed. A shortcut of NULL knows none. */
bool shortcut_find(struct shortcut *shortcut, const struct stat *st, struct digest *out);

/* Remember the digest of the file, by a reading that began at read_at. */
void shortcut_add(struct shortcut *shortcut, const struct stat *st, int64_t read_at,
		  const struct digest *what);

/*
 * Keep what was added for the next time; false when there was nothing to keep,
 * or it could not be.
 */
bool shortcut_keep(struct shortcut *shortcut);

DEFINE_AUTO(shortcut, struct shortcut *, shortcut_close);
