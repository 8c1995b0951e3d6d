/* SPDX-License-Identifier: Apache-2.0 */
/*
 * db_priv.h - LMDB as the store uses it: synchronous, one map for ever.
 *
 * A database is a directory with data.mdb and lock.mdb. Its map is fixed at
 * open: growing it in one process fails in another with MDB_MAP_RESIZED.
 *
 * Invariant: data.mdb is as long as what its meta page says is in use, and a
 * hole longer, from before the first commit on; a shorter one was truncated,
 * and is refused at open. What is truncated while it is open ends its readers
 * by SIGBUS, as with every map.
 *
 * Threads: handles may be shared; a transaction belongs to the thread that
 * began it. A reading one is cheap (a microsecond) and is kept short, since it
 * holds back the reuse of pages.
 */
#pragma once

#include "layers/base/buf.h"

#include <lmdb.h>
#include <stdint.h>

#define DB_READERS_MAX 4096 /* a slot for each reading transaction of all processes */
#define DB_TABLES_MAX 8

struct db {
	MDB_env *env; /* NULL when closed */
	char *path;   /* of its directory, for messages */
};

/*
 * Open dir/name. A truncated data file is ERR_CORRUPT; so is, without `create`,
 * a missing or empty one: LMDB would make an empty database of it.
 */
int db_open(const char *dir, const char *name, uint64_t map_bytes, bool create, struct db *out,
	    struct err *err) MUST_CHECK;
void db_close(struct db *db);

enum db_mode { DB_READ, DB_WRITE };

int db_begin(const struct db *db, enum db_mode mode, MDB_txn **out, struct err *err) MUST_CHECK;

/* Durable when this returns 0; the transaction is gone whatever is returned. */
int db_commit(const struct db *db, MDB_txn *txn, struct err *err) MUST_CHECK;

/* What an LMDB return code means to a user. Always -1. */
int db_fail(const struct db *db, int rc, struct err *err);

#ifdef __clang_analyzer__ /* as in err.h */
#define db_fail(...) ((void)db_fail(__VA_ARGS__), -1)
#endif

/* 1 hit, 0 miss, -1. The value lies in the map and lives as long as txn. */
int db_get(const struct db *db, MDB_txn *txn, MDB_dbi table, struct str key, struct str *out,
	   struct err *err) MUST_CHECK;
int db_put(const struct db *db, MDB_txn *txn, MDB_dbi table, struct str key, struct str value,
	   struct err *err) MUST_CHECK;

/* 1 deleted, 0 was not there, -1. */
int db_del(const struct db *db, MDB_txn *txn, MDB_dbi table, struct str key, struct err *err)
	MUST_CHECK;

DEFINE_AUTO(txn, MDB_txn *, mdb_txn_abort);
DEFINE_AUTO(cursor, MDB_cursor *, mdb_cursor_close);
static inline void auto_db_release(struct db *slot)
{
	db_close(slot);
}

static inline MDB_val db_val(struct str bytes)
{
	return (MDB_val){bytes.len, drop_const(bytes.ptr)}; /* LMDB does not write there */
}

static inline struct str db_str(MDB_val val)
{
	return (struct str){val.mv_data, val.mv_size};
}
