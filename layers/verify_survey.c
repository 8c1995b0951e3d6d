/* SPDX-License-Identifier: Apache-2.0 */
/* verify_survey.c - lists, entries and counts, compared with one another. */
#include "layers/verify_priv.h"

#include "layers/base/array.h"
#include "layers/places_priv.h"

#include <endian.h>

/* A count that has to be corrected. */
struct recount {
	struct digest id;
	uint64_t count; /* 0 for no record */
};

struct recounts {
	struct recount *at; /* owned */
	size_t count;
};

/* A blob of one chunk that is there, and of its size. 1, 0 or -1. */
static int verify_survey_is_single(const struct store_blobs *blobs, MDB_txn *txn,
				   const struct blob_entry *entry, const struct place *place,
				   struct err *err)
{
	struct str bytes;
	int found;

	if (memcmp(place->id, entry->digest.bytes, sizeof(place->id)) != 0)
		return 0;
	found = chunk_find(blobs, txn, &entry->digest, &bytes, err);
	return found == 1 ? bytes.len == entry->size : found;
}

/* 1 its whole list, 0 it is damaged, -1. *single as in struct verify_blob. */
static int verify_survey_list(const struct store_blobs *blobs, MDB_txn *txn,
			      const struct blob_entry *entry, struct places *places, bool *single,
			      struct err *err)
{
	size_t first = places->count;
	uint64_t size = 0;
	int found;

	if (places_add_blob(places, blobs, txn, entry, 0, err) < 0)
		return err->kind == ERR_CORRUPT ? 0 : -1;
	for (size_t i = first; i < places->count; i++)
		size += places->at[i].size;
	if (size != entry->size)
		return 0;
	if (entry->chunks != 1)
		return 1;
	found = verify_survey_is_single(blobs, txn, entry, &places->at[first], err);
	*single = found == 1;
	return found < 0 ? -1 : 1;
}

struct verify_survey_walk {
	const struct store_blobs *blobs;
	MDB_txn *txn;
	struct places places;
	struct verify_survey *out; /* NULL where only the places are wanted */
};

static int verify_survey_entry(struct verify_survey_walk *walk, const struct digest *digest,
			       struct err *err)
{
	struct verify_blob blob = {.digest = *digest};
	struct blob_entry entry = {.size = 0};
	int whole = blob_entry_find(walk->blobs, walk->txn, digest, &entry, err);

	if (whole == 1 && !digest_equal(&entry.digest, digest))
		whole = 0;
	if (whole < 0 && err->kind == ERR_CORRUPT)
		whole = 0;
	else if (whole == 1)
		whole = verify_survey_list(walk->blobs, walk->txn, &entry, &walk->places,
					   &blob.single, err);
	if (whole < 0)
		return -1;
	if (!walk->out)
		return 0;
	if (whole == 0)
		return digest_set_add(&walk->out->damaged, digest, err) < 0 ? -1 : 0;
	blob.size = entry.size;
	if (array_make_room(&walk->out->blobs, sizeof(blob), walk->out->blob_count, DIGEST_SET_MAX,
			    "blobs", err) < 0)
		return -1;
	walk->out->blobs[walk->out->blob_count++] = blob;
	walk->out->bytes += blob.single ? 0 : blob.size;
	return 0;
}

static int verify_survey_entries(struct verify_survey_walk *walk, struct err *err)
{
	AUTO(cursor) MDB_cursor *cursor = NULL;
	MDB_val key;
	MDB_val value;
	int rc = mdb_cursor_open(walk->txn, walk->blobs->blobs, &cursor);

	for (rc = rc ? rc : mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
	     rc == 0 && key.mv_size == 1 + 32; /* sha512: the table's second half */
	     rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
		struct digest digest = {0};

		memcpy(&digest, key.mv_data, key.mv_size);
		if (verify_survey_entry(walk, &digest, err) < 0)
			return -1;
	}
	places_sort(&walk->places);
	return rc == 0 || rc == MDB_NOTFOUND ? 0 : db_fail(&walk->blobs->db, rc, err);
}

static int recounts_add(struct recounts *recounts, const void *id, uint64_t count, struct err *err)
{
	struct recount *recount;

	if (array_make_room(&recounts->at, sizeof(*recount), recounts->count, PLACES_MAX,
			    "wrong counts", err) < 0)
		return -1;
	recount = &recounts->at[recounts->count++];
	*recount = (struct recount){.id = {.algorithm = DIGEST_SHA256}, .count = count};
	memcpy(recount->id.bytes, id, 32);
	return 0;
}

static uint64_t verify_survey_read_count(MDB_val value)
{
	uint64_t count = 0;

	if (value.mv_size == sizeof(count))
		memcpy(&count, value.mv_data, sizeof(count));
	return le64toh(count);
}

/* Chunks before id (all of them where it is NULL) that are held and have no count. */
static int verify_survey_missed(const struct places *places, size_t *at, const void *id,
				struct recounts *out, struct err *err)
{
	while (*at < places->count && (!id || memcmp(places->at[*at].id, id, 32) < 0)) {
		size_t uses = places_same(places, *at);

		if (recounts_add(out, places->at[*at].id, uses, err) < 0)
			return -1;
		*at += uses;
	}
	return 0;
}

/* Counts and places lie in the same order. */
static int verify_survey_compare(const struct verify_survey_walk *walk, struct recounts *out,
				 struct err *err)
{
	const struct places *places = &walk->places;
	AUTO(cursor) MDB_cursor *cursor = NULL;
	MDB_val key;
	MDB_val value;
	size_t at = 0;
	int rc = mdb_cursor_open(walk->txn, walk->blobs->counts, &cursor);

	for (rc = rc ? rc : mdb_cursor_get(cursor, &key, &value, MDB_FIRST); rc == 0;
	     rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
		size_t uses = 0;

		if (key.mv_size != 32)
			return err_set(err, ERR_CORRUPT, "%s: a count's key of %zu bytes",
				       walk->blobs->db.path, key.mv_size);
		if (verify_survey_missed(places, &at, key.mv_data, out, err) < 0)
			return -1;
		if (at < places->count && memcmp(places->at[at].id, key.mv_data, 32) == 0)
			uses = places_same(places, at);
		at += uses;
		if ((uses == 0 || verify_survey_read_count(value) != uses) &&
		    recounts_add(out, key.mv_data, uses, err) < 0)
			return -1;
	}
	if (rc != MDB_NOTFOUND)
		return db_fail(&walk->blobs->db, rc, err);
	return verify_survey_missed(places, &at, NULL, out, err);
}

/* Find lists of blobs that do not exist, by the first page of each. */
static int verify_survey_strays(const struct verify_survey_walk *walk, struct recounts *out,
				struct err *err)
{
	AUTO(cursor) MDB_cursor *cursor = NULL;
	struct digest blob = {.algorithm = DIGEST_SHA256};
	struct blob_entry entry;
	struct err ignored; /* a damaged entry is there */
	MDB_val key;
	MDB_val value;
	int rc = mdb_cursor_open(walk->txn, walk->blobs->pages, &cursor);

	for (rc = rc ? rc : mdb_cursor_get(cursor, &key, &value, MDB_FIRST); rc == 0;
	     rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
		if (key.mv_size < 32)
			continue;
		memcpy(blob.bytes, key.mv_data, 32);
		if (out->count > 0 && digest_equal(&out->at[out->count - 1].id, &blob))
			continue;
		if (blob_entry_find(walk->blobs, walk->txn, &blob, &entry, &ignored) == 0 &&
		    recounts_add(out, blob.bytes, 0, err) < 0)
			return -1;
	}
	return rc == MDB_NOTFOUND ? 0 : db_fail(&walk->blobs->db, rc, err);
}

static void verify_survey_add_chunk_bytes(const struct places *places, struct verify_survey *out)
{
	for (size_t at = 0; at < places->count; at += places_same(places, at))
		out->bytes += places->at[at].size;
}

int verify_survey_read(const struct store_blobs *blobs, struct verify_survey *out, struct err *err)
{
	AUTO(txn) MDB_txn *txn = NULL;
	struct verify_survey_walk walk = {.blobs = blobs, .out = out};
	struct recounts recounts = {0};
	int result;

	if (db_begin(&blobs->db, DB_READ, &txn, err) < 0)
		return -1;
	walk.txn = txn;
	result = verify_survey_entries(&walk, err);
	if (result == 0)
		result = verify_survey_compare(&walk, &recounts, err);
	out->wrong_counts = recounts.count;
	recounts.count = 0;
	if (result == 0)
		result = verify_survey_strays(&walk, &recounts, err);
	out->wrong_counts += recounts.count;
	verify_survey_add_chunk_bytes(&walk.places, out);
	places_done(&walk.places);
	free(recounts.at);
	return result;
}

void verify_survey_done(struct verify_survey *survey)
{
	free(survey->blobs);
	digest_set_done(&survey->damaged);
	*survey = (struct verify_survey){0};
}

static int verify_survey_set_count(const struct store_blobs *blobs, MDB_txn *txn,
				   const struct recount *recount, struct err *err)
{
	struct str key = {(const char *)recount->id.bytes, 32};
	uint64_t disk = htole64(recount->count);

	if (recount->count == 0)
		return db_del(&blobs->db, txn, blobs->counts, key, err) < 0 ? -1 : 0;
	return db_put(&blobs->db, txn, blobs->counts, key,
		      (struct str){(const char *)&disk, sizeof(disk)}, err);
}

static int verify_survey_mend_all(const struct verify_survey_walk *walk, struct recounts *recounts,
				  struct err *err)
{
	if (verify_survey_strays(walk, recounts, err) < 0)
		return -1;
	for (size_t i = 0; i < recounts->count; i++) {
		if (blob_list_drop(walk->blobs, walk->txn, &recounts->at[i].id, err) < 0)
			return -1;
	}
	recounts->count = 0;
	if (verify_survey_compare(walk, recounts, err) < 0)
		return -1;
	for (size_t i = 0; i < recounts->count; i++) {
		if (verify_survey_set_count(walk->blobs, walk->txn, &recounts->at[i], err) < 0)
			return -1;
	}
	return 0;
}

int verify_survey_mend(const struct store_blobs *blobs, MDB_txn *txn, struct err *err)
{
	struct verify_survey_walk walk = {.blobs = blobs, .txn = txn};
	struct recounts recounts = {0};
	int result = verify_survey_entries(&walk, err);

	if (result == 0)
		result = verify_survey_mend_all(&walk, &recounts, err);
	places_done(&walk.places);
	free(recounts.at);
	return result;
}
