/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collect_blobs.c - blobs that nothing leads to, in batches; what they hold
 * alone is counted first.
 */
#include "layers/collect_priv.h"
#include "layers/places_priv.h"

#include <stdlib.h>

#define BLOBS_LOOK_MAX 4096 /* entries that one transaction looks at */

/* Blobs that nothing seems to need, in the order of their sha256. */
struct doomed {
	struct blob_entry at[COLLECT_BATCH_BLOBS];
	size_t count;
	uint64_t refs;
	struct digest after; /* the last that was looked at */
	bool more;
};

static bool collect_is_doomed(const struct collector *collector, const struct blob_entry *entry)
{
	return !collect_keeps(collector, &entry->digest) &&
	       !collect_is_leased(collector, &entry->digest) &&
	       !blob_stamp_is_after(entry->stamp, collector->stamp);
}

static bool doomed_is_full(const struct doomed *doomed)
{
	return doomed->count == COLLECT_BATCH_BLOBS || doomed->refs >= COLLECT_BATCH_REFS;
}

static int doomed_consider(const struct collector *collector, const struct store_blobs *blobs,
			   MDB_txn *txn, struct doomed *doomed, struct err *err)
{
	struct blob_entry entry;
	int found = blob_entry_find(blobs, txn, &doomed->after, &entry, err);

	if (found < 0)
		return -1;
	if (found == 1 && collect_is_doomed(collector, &entry)) {
		doomed->at[doomed->count++] = entry;
		doomed->refs += entry.chunks;
	}
	return 0;
}

/* Fill the batch with what comes behind `after`. */
static int doomed_find(const struct collector *collector, const struct store_blobs *blobs,
		       struct doomed *doomed, struct err *err)
{
	AUTO(txn) MDB_txn *txn = NULL;
	AUTO(cursor) MDB_cursor *cursor = NULL;
	struct digest from = doomed->after;
	MDB_val key = {1 + 32, &from};
	MDB_val value;
	int rc;

	doomed->count = 0;
	doomed->refs = 0;
	doomed->more = false;
	if (db_begin(&blobs->db, DB_READ, &txn, err) < 0)
		return -1;
	rc = mdb_cursor_open(txn, blobs->blobs, &cursor);
	rc = rc ? rc : mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
	for (int looked = 0; rc == 0 && key.mv_size == 1 + 32; looked++) {
		doomed->more = doomed_is_full(doomed) || looked == BLOBS_LOOK_MAX;
		if (doomed->more)
			return 0;
		if (memcmp(key.mv_data, &from, key.mv_size) != 0) {
			memcpy(&doomed->after, key.mv_data, key.mv_size);
			if (doomed_consider(collector, blobs, txn, doomed, err) < 0)
				return -1;
		}
		rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
	}
	return rc == 0 || rc == MDB_NOTFOUND ? 0 : db_fail(&blobs->db, rc, err);
}

/* Look again: somebody may have put it again, or named it. */
static int collect_blob(struct collector *collector, const struct store_blobs *blobs, MDB_txn *txn,
			const struct digest *digest, struct err *err)
{
	struct blob_entry entry;
	int found = blob_entry_find(blobs, txn, digest, &entry, err);

	if (found <= 0 || !collect_is_doomed(collector, &entry))
		return found < 0 ? -1 : 0;
	if (blob_entry_del(blobs, txn, &entry, err) < 0)
		return -1;
	collector->result.blobs++;
	return 0;
}

static int collect_batch(struct collector *collector, const struct store_blobs *blobs,
			 const struct doomed *doomed, struct err *err)
{
	AUTO(txn) MDB_txn *txn = NULL;

	if (collect_exclude(collector, err) < 0 || db_begin(&blobs->db, DB_WRITE, &txn, err) < 0)
		return -1;
	for (size_t i = 0; i < doomed->count; i++) {
		if (collect_blob(collector, blobs, txn, &doomed->at[i].digest, err) < 0)
			return -1;
	}
	return db_commit(&blobs->db, steal_ptr(&txn), err);
}

/* Names by another digest of what is gone. */
struct dangling {
	struct digest at[COLLECT_BATCH_BLOBS];
	size_t count;
	struct digest after; /* the last that was looked at */
	bool more;
};

static int dangling_consider(const struct store_blobs *blobs, MDB_txn *txn,
			     struct dangling *dangling, struct err *err)
{
	struct blob_entry entry;
	int found = blob_entry_find(blobs, txn, &dangling->after, &entry, err);

	if (found == 0)
		dangling->at[dangling->count++] = dangling->after;
	return found < 0 ? -1 : 0;
}

/* Those behind `after`; names by a sha512 are the table's second half. */
static int dangling_find(const struct store_blobs *blobs, struct dangling *dangling,
			 struct err *err)
{
	AUTO(txn) MDB_txn *txn = NULL;
	AUTO(cursor) MDB_cursor *cursor = NULL;
	struct digest from = dangling->after;
	MDB_val key = {1 + DIGEST_BYTES_MAX, &from};
	MDB_val value;
	int rc;

	dangling->count = 0;
	dangling->more = false;
	if (db_begin(&blobs->db, DB_READ, &txn, err) < 0)
		return -1;
	rc = mdb_cursor_open(txn, blobs->blobs, &cursor);
	rc = rc ? rc : mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
	for (int looked = 0; rc == 0 && key.mv_size == 1 + DIGEST_BYTES_MAX; looked++) {
		dangling->more = dangling->count == COLLECT_BATCH_BLOBS || looked == BLOBS_LOOK_MAX;
		if (dangling->more)
			return 0;
		if (memcmp(key.mv_data, &from, key.mv_size) != 0) {
			memcpy(&dangling->after, key.mv_data, key.mv_size);
			if (dangling_consider(blobs, txn, dangling, err) < 0)
				return -1;
		}
		rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
	}
	return rc == 0 || rc == MDB_NOTFOUND ? 0 : db_fail(&blobs->db, rc, err);
}

static int dangling_drop(const struct store_blobs *blobs, const struct dangling *dangling,
			 struct err *err)
{
	AUTO(txn) MDB_txn *txn = NULL;

	if (dangling->count == 0)
		return 0;
	if (db_begin(&blobs->db, DB_WRITE, &txn, err) < 0)
		return -1;
	for (size_t i = 0; i < dangling->count; i++) {
		if (blob_alias_drop(blobs, txn, &dangling->at[i], err) < 0)
			return -1;
	}
	return db_commit(&blobs->db, steal_ptr(&txn), err);
}

static int collect_aliases(struct collector *collector, const struct store_blobs *blobs,
			   struct err *err)
{
	struct dangling dangling = {.after = {.algorithm = DIGEST_SHA512}, .more = true};

	while (dangling.more) {
		if (cancel_check(collector->options.cancel, err) < 0 ||
		    dangling_find(blobs, &dangling, err) < 0 ||
		    dangling_drop(blobs, &dangling, err) < 0)
			return -1;
	}
	return 0;
}

int collect_blobs(struct collector *collector, struct err *err)
{
	auto_free struct doomed *doomed = calloc(1, sizeof(*doomed));
	const struct store_blobs *blobs;

	if (!doomed)
		abort();
	if (store_blobs(collector->store, &blobs, err) < 0)
		return -1;
	do {
		int result = 0;

		if (cancel_check(collector->options.cancel, err) < 0 ||
		    doomed_find(collector, blobs, doomed, err) < 0)
			return -1;
		if (doomed->count > 0)
			result = collect_batch(collector, blobs, doomed, err);
		collect_admit(collector);
		if (result < 0)
			return -1;
	} while (doomed->more);
	return collector->result.blobs > 0 ? collect_aliases(collector, blobs, err) : 0;
}

/* Chunks all of whose places are among these. */
static int places_tally(struct places *places, const struct store_blobs *blobs, MDB_txn *txn,
			struct collect_result *out, struct err *err)
{
	places_sort(places);
	for (size_t i = 0, same; i < places->count; i += same) {
		struct digest id = {.algorithm = DIGEST_SHA256};
		uint64_t total;

		same = places_same(places, i);
		memcpy(id.bytes, places->at[i].id, sizeof(places->at[i].id));
		if (chunk_count(blobs, txn, &id, &total, err) < 0)
			return -1;
		if (total > same)
			continue;
		out->chunks++;
		out->chunk_bytes += places->at[i].size;
	}
	return 0;
}

static int collect_gather(struct collector *collector, const struct store_blobs *blobs,
			  struct places *places, struct err *err)
{
	auto_free struct doomed *doomed = calloc(1, sizeof(*doomed));
	AUTO(txn) MDB_txn *txn = NULL;

	if (!doomed)
		abort();
	if (db_begin(&blobs->db, DB_READ, &txn, err) < 0)
		return -1;
	do {
		if (doomed_find(collector, blobs, doomed, err) < 0)
			return -1;
		for (size_t i = 0; i < doomed->count; i++) {
			struct blob_entry entry;
			int found = blob_entry_find(blobs, txn, &doomed->at[i].digest, &entry, err);

			if (found < 0 ||
			    (found == 1 && places_add_blob(places, blobs, txn, &entry, 0, err) < 0))
				return -1;
			collector->result.blobs += found == 1;
		}
	} while (doomed->more);
	return places_tally(places, blobs, txn, &collector->result, err);
}

int collect_count_blobs(struct collector *collector, struct err *err)
{
	auto_places struct places places = {0};
	const struct store_blobs *blobs;

	if (store_blobs(collector->store, &blobs, err) < 0)
		return -1;
	return collect_gather(collector, blobs, &places, err);
}
