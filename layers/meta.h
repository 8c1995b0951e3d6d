/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meta.h - small JSON records in named tables, in transactions.
 *
 * A record is one JSON object with a `v`; its key is an ASCII id or a
 * big-endian number. Each table is written by its owner module alone (the
 * contract lists them). Who rewrites a record changes what meta_get() gave, so
 * members that a newer program put there survive.
 *
 * A read transaction is a snapshot; it must not span a wait for a peer. One
 * write transaction exists at a time, across processes; it does no I/O but its
 * commit, and everything in it is durable when meta_commit() returns 0.
 *
 * Threads: a transaction belongs to the thread that began it.
 */
#pragma once

#include "layers/base/json.h"
#include "layers/base/ulid.h"
#include "layers/store.h"

#define META_VALUE_MAX ((size_t)4 * 1024 * 1024) /* an image of 1,000 steps is 300 KiB */
#define META_TABLE_MAX ((size_t)32)              /* a table's name and its NUL */
#define META_KEY_MAX ((size_t)479)               /* LMDB's 511 without the table */

struct meta;

/*
 * META_SHARED writes, and may be committed together with what other threads
 * write so at that time, each for itself: for what many do at once. What is in
 * it is short, and takes no lock that somebody may hold while he commits.
 */
enum meta_mode { META_READ, META_WRITE, META_SHARED };

/* A number, never 0, that changes with each commit of any process. */
uint64_t meta_generation(const struct store *store);

int meta_begin(struct store *store, enum meta_mode mode, struct meta **out, struct err *err)
	MUST_CHECK;

/* Make all of it durable; the transaction is gone whatever is returned. */
int meta_commit(struct meta *meta, struct err *err) MUST_CHECK;
void meta_abort(struct meta *meta);

/* The store that was given. */
struct store *meta_store(const struct meta *meta);

/* Whether it is a snapshot, and something was committed since by any process. */
bool meta_is_outdated(const struct meta *meta);

/* 1 hit, 0 miss, -1. The caller owns *out. A table never written is empty. */
int meta_get(struct meta *meta, const char *table, struct str key, json_t **out, struct err *err)
	MUST_CHECK;

/* Whether there is a record; nothing is parsed. 1, 0 or -1. */
int meta_has(struct meta *meta, const char *table, struct str key, struct err *err) MUST_CHECK;

int meta_put(struct meta *meta, const char *table, struct str key, const json_t *value,
	     struct err *err) MUST_CHECK;

/*
 * Without parsing: a record's bytes as they lie in the map, valid until the
 * transaction ends or writes (1 hit, 0 miss, -1); and a record that the caller
 * formatted himself, `v` first.
 */
int meta_view(struct meta *meta, const char *table, struct str key, struct str *out,
	      struct err *err) MUST_CHECK;
int meta_put_text(struct meta *meta, const char *table, struct str key, struct str text,
		  struct err *err) MUST_CHECK;

/* 1 deleted, 0 was not there. */
int meta_del(struct meta *meta, const char *table, struct str key, struct err *err) MUST_CHECK;

/*
 * Call fn for every record whose key starts with prefix, in key order, until it
 * returns non-zero, which is returned. key and value are valid during fn, which
 * may put and delete records of this transaction.
 */
typedef int meta_each_fn(void *ctx, struct str key, const json_t *value, struct err *err);
int meta_each(struct meta *meta, const char *table, struct str prefix, meta_each_fn *fn, void *ctx,
	      struct err *err) MUST_CHECK;

/*
 * The same for the records below prefix whose keys come after `after`; and for
 * those before `before` ("" for all), from the last to the first: there fn only
 * reads. What is skipped costs nothing.
 */
int meta_each_after(struct meta *meta, const char *table, struct str prefix, struct str after,
		    meta_each_fn *fn, void *ctx, struct err *err) MUST_CHECK;
int meta_each_before(struct meta *meta, const char *table, struct str prefix, struct str before,
		     meta_each_fn *fn, void *ctx, struct err *err) MUST_CHECK;

/* The same for the keys alone, upwards; nothing is parsed. after may be "". */
typedef int meta_each_key_fn(void *ctx, struct str key, struct err *err);
int meta_each_key(struct meta *meta, const char *table, struct str prefix, struct str after,
		  meta_each_key_fn *fn, void *ctx, struct err *err) MUST_CHECK;

/*
 * The first or the last key below prefix; nothing is parsed. 1, 0 there is
 * none, -1. *out is valid until the transaction ends or writes.
 */
enum meta_end { META_FIRST, META_LAST };
int meta_find_end(struct meta *meta, const char *table, struct str prefix, enum meta_end end,
		  struct str *out, struct err *err) MUST_CHECK;

/*
 * An id (ulid.h) for a new record of a table whose keys are all ids with this
 * prefix: it sorts behind all that are there.
 */
int meta_new_id(struct meta *meta, const char *table, struct str prefix, int64_t now_ms,
		char out[static ID_TEXT_MAX], struct err *err) MUST_CHECK;

/*
 * Call fn in this thread once this transaction is durable, and not at all when
 * it is aborted or fails. The same fn and ctx again are one call.
 */
typedef void meta_committed_fn(void *ctx);
#define META_COMMITTED_MAX 8
void meta_on_commit(struct meta *meta, meta_committed_fn *fn, void *ctx);

/*
 * After meta_each() has failed: forget the record that it failed on, since it
 * cannot be read. 1 removed, 0 there is none, -1.
 */
int meta_drop_failed(struct meta *meta, struct err *err) MUST_CHECK;

DEFINE_AUTO(meta, struct meta *, meta_abort);
