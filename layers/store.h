/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h - the data directory: two LMDB environments and the directories
 * beside them.
 *
 * 	meta/ blobs/   LMDB: small JSON records; chunks and what names them
 * 	trees/<hex>/   unpacked layers, by diff id      trash/   on their way out
 * 	machines/<id>/ running machines                 tmp/     staging
 * 	run/           sockets, locks, a machine's base VERSION  lock  reserve
 *
 * Invariants: the directory is 0700 and ours (an image's setuid files lie in
 * it). VERSION holds our format; a store of another one is ERR_CORRUPT, with a
 * sentence, and is not touched. Several processes may have one store open.
 *
 * Ownership: one struct store a process and data directory (LMDB forbids two),
 * shared by all its threads; it outlives all that was opened through it. It
 * does not survive fork(): a child execs or opens anew.
 *
 * Durability: see meta.h and blob.h. Nothing is synced at close.
 */
#pragma once

#include "layers/base/cancel.h"
#include "layers/base/fd.h"

#include <stdbool.h>
#include <stdint.h>

#define STORE_FORMAT 1
#define STORE_MAP_BYTES ((uint64_t)1 << 40) /* growing a map moves every pointer */

struct store;

enum store_dir {
	STORE_ROOT,
	STORE_TREES,
	STORE_MACHINES,
	STORE_TMP,
	STORE_TRASH,
	STORE_RUN,
	STORE_DIRS,
};

struct store_options {
	const char *path;   /* absolute; made if its parent exists and `create` is set */
	uint64_t map_bytes; /* 0 for STORE_MAP_BYTES; TSan and valgrind need less */
	bool create;
};

/*
 * ERR_NOT_FOUND where there is no store and `create` is not set; ERR_DENIED for
 * a directory that others own or may enter; ERR_CORRUPT for another format.
 */
int store_open(const struct store_options *options, struct store **out, struct err *err) MUST_CHECK;
void store_close(struct store *store);

/* A borrowed descriptor of one of the directories. */
int store_dirfd(const struct store *store, enum store_dir dir);

/* The absolute path that was given, for messages and for roles. */
const char *store_path(const struct store *store);
uint64_t store_map_bytes(const struct store *store);

/*
 * Sweep what killed processes left: what lies in tmp/ and is not held by a
 * flock, trees of another boot that were never synced, trees that were never
 * recorded, the trash. Cheap when there is nothing; machines/ is swept by its
 * owner, sandbox/. May run in a thread of its own, and in several processes;
 * ERR_CANCELLED leaves the rest to the next one.
 */
int store_sweep(struct store *store, const struct cancel *cancel, struct err *err) MUST_CHECK;

/*
 * A fresh staging directory under tmp/, held by a flock until staging_close(),
 * which removes what is still in it. On ext4 a directory made in it starts in a
 * block group of its own (EXT4_TOPDIR_FL), since files are slow to create where
 * many were deleted lately.
 */
struct staging {
	struct store *store;
	int fd; /* -1 when there is none */
	char name[32];
	int lockfd;
};

#define STAGING_INIT ((struct staging){.fd = -1, .lockfd = -1})

int staging_open(struct store *store, struct staging *out, struct err *err) MUST_CHECK;
void staging_close(struct staging *staging);

/*
 * Remove dirfd/name and everything under it: renamed into trash/ at once (same
 * file system). 1,000 entries of what lies there are unlinked here, the rest by
 * store_sweep(). ERR_DENIED for what lies outside the store. A name that is
 * not there is no error.
 */
int store_discard(struct store *store, int dirfd, const char *name, struct err *err) MUST_CHECK;

/* The same, but all the unlinking is left to a sweep, for callers who must not wait for a disk. */
int store_set_aside(struct store *store, int dirfd, const char *name, struct err *err) MUST_CHECK;

DEFINE_AUTO(store, struct store *, store_close);
static inline void auto_staging_release(struct staging *slot)
{
	staging_close(slot);
}
#define auto_staging AUTO(staging)
