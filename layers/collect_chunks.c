/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collect_chunks.c - chunks that no blob holds, and frames of chunks that went.
 *
 * A write session may have added such a chunk, or found it and relies on it, so
 * they are deleted only while none is open (store_session()). Who wants to open
 * one waits for a transaction; we wait COLLECT_SESSION_MS for those that are
 * open.
 */
#include "layers/base/clock.h"
#include "layers/chunk_priv.h"
#include "layers/collect_priv.h"

#include <assert.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>

#define CHUNKS_LOOK_MAX 65536 /* records that one transaction looks at */
#define CHUNKS_RETRY_MS 2

struct litter_key {
	char bytes[CHUNK_FRAME_KEY_MAX];
	size_t len;
};

/* Keys of one table, found by a reading transaction and deleted by a writing one. */
struct litter {
	struct litter_key at[COLLECT_BATCH_CHUNKS];
	struct litter_key after; /* the last that was looked at */
	size_t count;
	bool more;
};

typedef int litter_test_fn(const struct store_blobs *blobs, MDB_txn *txn, struct str key,
			   struct str value, struct err *err);

static void litter_key(struct litter_key *out, MDB_val key)
{
	assert(key.mv_size <= sizeof(out->bytes));
	memcpy(out->bytes, key.mv_data, key.mv_size);
	out->len = key.mv_size;
}

static int litter_find(const struct store_blobs *blobs, MDB_dbi table, litter_test_fn *test,
		       struct litter *out, struct err *err)
{
	AUTO(txn) MDB_txn *txn = NULL;
	AUTO(cursor) MDB_cursor *cursor = NULL;
	MDB_val key = {out->after.len, out->after.bytes};
	MDB_val value;
	int rc;

	out->count = 0;
	out->more = false;
	if (db_begin(&blobs->db, DB_READ, &txn, err) < 0)
		return -1;
	rc = mdb_cursor_open(txn, table, &cursor);
	rc = rc ? rc
		: mdb_cursor_get(cursor, &key, &value, out->after.len ? MDB_SET_RANGE : MDB_FIRST);
	if (rc == 0 && str_equal(db_str(key), (struct str){out->after.bytes, out->after.len}))
		rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
	for (int looked = 0; rc == 0; looked++) {
		int found = test(blobs, txn, db_str(key), db_str(value), err);

		if (found < 0)
			return -1;
		litter_key(&out->after, key);
		if (found == 1)
			out->at[out->count++] = out->after;
		out->more = out->count == COLLECT_BATCH_CHUNKS || looked == CHUNKS_LOOK_MAX;
		if (out->more)
			return 0;
		rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
	}
	return rc == MDB_NOTFOUND ? 0 : db_fail(&blobs->db, rc, err);
}

/* 1 nobody holds it, 0 somebody does, -1. */
static int chunk_is_litter(const struct store_blobs *blobs, MDB_txn *txn, struct str key,
			   struct str value, struct err *err)
{
	struct digest id = {.algorithm = DIGEST_SHA256};
	uint64_t count;

	(void)value;
	if (key.len != 32)
		return err_set(err, ERR_CORRUPT, "%s: a chunk's key of %zu bytes", blobs->db.path,
			       key.len);
	memcpy(id.bytes, key.ptr, key.len);
	return chunk_count(blobs, txn, &id, &count, err) < 0 ? -1 : count == 0;
}

static int frame_is_litter(const struct store_blobs *blobs, MDB_txn *txn, struct str key,
			   struct str value, struct err *err)
{
	struct digest id = {.algorithm = DIGEST_SHA256};
	struct str bytes;
	int found;

	(void)key;
	if (value.len < 32)
		return 1;
	memcpy(id.bytes, value.ptr, 32);
	found = chunk_find(blobs, txn, &id, &bytes, err);
	return found < 0 ? -1 : !found;
}

/* Delete what is still litter; *out_bytes are the values'. */
static int litter_delete(const struct store_blobs *blobs, MDB_dbi table, litter_test_fn *test,
			 const struct litter *litter, uint64_t *out_count, uint64_t *out_bytes,
			 struct err *err)
{
	AUTO(txn) MDB_txn *txn = NULL;

	if (db_begin(&blobs->db, DB_WRITE, &txn, err) < 0)
		return -1;
	for (size_t i = 0; i < litter->count; i++) {
		struct str key = {litter->at[i].bytes, litter->at[i].len};
		struct str value;
		int found = db_get(&blobs->db, txn, table, key, &value, err);

		if (found == 1)
			found = test(blobs, txn, key, value, err);
		if (found < 0)
			return -1;
		if (found == 0)
			continue;
		*out_count += 1;
		*out_bytes += value.len;
		if (db_del(&blobs->db, txn, table, key, err) < 0)
			return -1;
	}
	return db_commit(&blobs->db, steal_ptr(&txn), err);
}

/* A descriptor: no write session is open until it is closed. -2 when one stays open for long. */
static int collect_end_sessions(struct collector *collector, struct err *err)
{
	struct pollfd wake = {.fd = cancel_fd(collector->options.cancel), .events = POLLIN};
	int64_t end = clock_monotonic_ms() + COLLECT_SESSION_MS;
	auto_close int fd = openat(collector->store->dirs[STORE_ROOT], "blobs/sessions",
				   O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_os(err, errno, "open %s/blobs/sessions", collector->store->path);
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_os(err, errno, "lock %s/blobs/sessions", collector->store->path);
		if (clock_monotonic_ms() >= end)
			return -2;
		(void)poll(&wake, 1, CHUNKS_RETRY_MS);
		if (cancel_check(collector->options.cancel, err) < 0)
			return -1;
	}
	return steal_fd(&fd);
}

static void collect_count_litter(struct collector *collector, const struct store_blobs *blobs,
				 const struct litter *litter)
{
	struct collect_result *result = &collector->result;
	AUTO(txn) MDB_txn *txn = NULL;
	struct err ignored; /* what went meanwhile is not counted */

	if (db_begin(&blobs->db, DB_READ, &txn, &ignored) < 0)
		return;
	for (size_t i = 0; i < litter->count; i++) {
		struct str key = {litter->at[i].bytes, litter->at[i].len};
		struct str value;

		if (db_get(&blobs->db, txn, blobs->chunks, key, &value, &ignored) != 1)
			continue;
		result->chunks++;
		result->chunk_bytes += value.len;
	}
}

static int collect_litter(struct collector *collector, const struct store_blobs *blobs,
			  const struct litter *litter, struct err *err)
{
	struct collect_result *result = &collector->result;
	auto_close int sessions = -1;

	if (collector->options.dry_run) {
		collect_count_litter(collector, blobs, litter);
		return 0;
	}
	sessions = collect_end_sessions(collector, err);
	if (sessions == -2) {
		result->chunks_left = true;
		return 0;
	}
	if (sessions < 0)
		return -1;
	return litter_delete(blobs, blobs->chunks, chunk_is_litter, litter, &result->chunks,
			     &result->chunk_bytes, err);
}

static int collect_frames(struct collector *collector, const struct store_blobs *blobs,
			  struct litter *litter, struct err *err)
{
	uint64_t count = 0;
	uint64_t bytes = 0;

	litter->after.len = 0;
	do {
		if (cancel_check(collector->options.cancel, err) < 0 ||
		    litter_find(blobs, blobs->frames, frame_is_litter, litter, err) < 0)
			return -1;
		if (litter->count > 0 && litter_delete(blobs, blobs->frames, frame_is_litter,
						       litter, &count, &bytes, err) < 0)
			return -1;
	} while (litter->more);
	return 0;
}

int collect_chunks(struct collector *collector, struct err *err)
{
	auto_free struct litter *litter = calloc(1, sizeof(*litter));
	const struct store_blobs *blobs;

	if (!litter)
		abort();
	if (store_blobs(collector->store, &blobs, err) < 0)
		return -1;
	do {
		if (cancel_check(collector->options.cancel, err) < 0 ||
		    litter_find(blobs, blobs->chunks, chunk_is_litter, litter, err) < 0)
			return -1;
		if (litter->count > 0 && collect_litter(collector, blobs, litter, err) < 0)
			return -1;
	} while (litter->more && !collector->result.chunks_left);
	if (collector->options.dry_run || collector->result.chunks == 0)
		return 0;
	return collect_frames(collector, blobs, litter, err);
}
