/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_priv.h - what the files of layers/ share of an open store.
 *
 * meta/ is open as long as the store is; blobs/ is opened when it is first
 * asked for, because a cached bake never asks.
 */
#pragma once

#include "layers/base/clock.h"
#include "layers/base/lock.h"
#include "layers/batch_priv.h"
#include "layers/db_priv.h"
#include "layers/share_priv.h"
#include "layers/store.h"

/* The database blobs/; the file that owns a table says what it holds. */
struct store_blobs {
	struct db db;
	MDB_dbi chunks;   /* chunk.c */
	MDB_dbi counts;   /* chunk.c */
	MDB_dbi frames;   /* chunk.c */
	MDB_dbi blobs;    /* blob_entry.c */
	MDB_dbi pages;    /* blob_entry.c */
	MDB_dbi receipts; /* receipt.c */
};

#define STORE_LISTENERS_MAX 8

/* Who is told of events, in this process (journal.c). */
struct store_listener {
	void (*fn)(void *ctx);
	void *ctx;
};

struct store {
	char *path;
	uint64_t map_bytes;
	int dirs[STORE_DIRS];
	int lockfd; /* shared flock: somebody has the store open */
	struct db meta;
	MDB_dbi records;    /* meta.c */
	struct share share; /* meta.c */
	struct batch_queue queue;
	struct lock lock;
	/* guarded by lock: */
	struct store_blobs blobs;
	char boot[BOOT_ID_MAX]; /* "" until asked for */
	struct lock use_lock;   /* lease.c */
	/* guarded by use_lock: */
	unsigned uses;            /* leases of this process that are in use */
	struct lock reading_lock; /* lease_reading.c */
	/* guarded by reading_lock: */
	struct lease_reading *reading; /* which takes names; or NULL */
	struct lock listen_lock;       /* journal.c */
	/* guarded by listen_lock: */
	struct store_listener listeners[STORE_LISTENERS_MAX];
	size_t listener_count;
};

/* The blobs database; valid until the store is closed. */
int store_blobs(struct store *store, const struct store_blobs **out, struct err *err) MUST_CHECK;

/*
 * A write session: while one is open anywhere, collection leaves chunks without
 * a count alone. It is a shared flock on blobs/sessions, which a collector
 * takes exclusively before it deletes such chunks; so it ends with its
 * process, however that ends. Returns a descriptor to close.
 */
int store_session(struct store *store, struct err *err) MUST_CHECK;

/* This boot's id, read once. */
int store_boot(struct store *store, char out[static BOOT_ID_MAX], struct err *err) MUST_CHECK;
