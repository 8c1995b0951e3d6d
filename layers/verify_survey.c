/* SPDX-License-Identifier: Apache-2.0 */
/* verify_survey.c - lists, entries and counts, compared with one another. */
#include "layers/verify_priv.h"

#include "layers/base/array.h"

#include <endian.h>

struct place {
	uint8_t id[32];
	uint32_t size;
};

struct places {
	struct place *at; /* owned; sorted */
	size_t count;
};

/* A count that has to be another. */
struct recount {
	struct digest id;
	uint64_t count; /* 0 for no record */
};

struct recounts {
	struct recount *at; /* owned */
	size_t count;
};

static int place_compare(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(((const struct place *)a)->id));
}

/* A blob of one chunk that is there, and of its size. 1, 0 or -1. */
static int survey_is_single(const struct store_blobs *blobs, MDB_txn *txn,
			    const struct blob_entry *entry, const struct blob_ref *ref,
			    struct err *err)
{
	struct str bytes;
	int found;

	if (entry->chunks != 1 || memcmp(ref->id, entry->digest.bytes, sizeof(ref->id)) != 0)
		return 0;
	found = chunk_find(blobs, txn, &entry->digest, &bytes, err);
	return found == 1 ? bytes.len == entry->size : found;
}

/* 1 its whole list, 0 it is damaged, -1. *single as in struct verify_blob. */
static int survey_list(const struct store_blobs *blobs, MDB_txn *txn,
		       const struct blob_entry *entry, struct places *places, bool *single,
		       struct err *err)
{
	auto_free struct blob_ref *refs = malloc(BLOB_PAGE_REFS * sizeof(*refs));
	uint64_t size = 0;
	size_t count;
	int found;

	if (!refs)
		abort();
	for (uint64_t page = 0; page * BLOB_PAGE_REFS < entry->chunks; page++) {
		if (blob_entry_page(blobs, txn, entry, page, refs, &count, err) < 0)
			return err->kind == ERR_CORRUPT ? 0 : -1;
		for (size_t i = 0; i < count; i++) {
			struct blob_chunk chunk;
			struct place *place;

			places->at = array_grow(places->at, places->count, sizeof(*places->at));
			place = &places->at[places->count++];
			blob_ref_read(&refs[i], &chunk);
			memcpy(place->id, refs[i].id, sizeof(place->id));
			place->size = chunk.size;
			size += chunk.size;
		}
	}
	if (size != entry->size)
		return 0;
	found = entry->chunks == 1 ? survey_is_single(blobs, txn, entry, refs, err) : 0;
	*single = found == 1;
	return found < 0 ? -1 : 1;
}

struct survey_walk {
	const struct store_blobs *blobs;
	MDB_txn *txn;
	struct places places;
	struct survey *out; /* NULL where only the places are wanted */
};

static int survey_entry(struct survey_walk *walk, const struct digest *digest, struct err *err)
{
	struct verify_blob blob = {.digest = *digest};
	struct blob_entry entry = {.size = 0};
	int whole = blob_entry_find(walk->blobs, walk->txn, digest, &entry, err);

	if (whole == 1 && !digest_equal(&entry.digest, digest))
		whole = 0;
	if (whole < 0 && err->kind == ERR_CORRUPT)
		whole = 0;
	else if (whole == 1)
		whole = survey_list(walk->blobs, walk->txn, &entry, &walk->places, &blob.single,
				    err);
	if (whole < 0)
		return -1;
	if (!walk->out)
		return 0;
	if (whole == 0)
		return digest_set_add(&walk->out->damaged, digest, err) < 0 ? -1 : 0;
	blob.size = entry.size;
	walk->out->blobs = array_grow(walk->out->blobs, walk->out->blob_count, sizeof(blob));
	walk->out->blobs[walk->out->blob_count++] = blob;
	walk->out->bytes += blob.single ? 0 : blob.size;
	return 0;
}

static int survey_entries(struct survey_walk *walk, struct err *err)
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
		if (survey_entry(walk, &digest, err) < 0)
			return -1;
	}
	if (walk->places.count > 0)
		qsort(walk->places.at, walk->places.count, sizeof(*walk->places.at), place_compare);
	return rc == 0 || rc == MDB_NOTFOUND ? 0 : db_fail(&walk->blobs->db, rc, err);
}

static void recounts_add(struct recounts *recounts, const void *id, uint64_t count)
{
	struct recount *recount;

	recounts->at = array_grow(recounts->at, recounts->count, sizeof(*recounts->at));
	recount = &recounts->at[recounts->count++];
	*recount = (struct recount){.id = {.algorithm = DIGEST_SHA256}, .count = count};
	memcpy(recount->id.bytes, id, 32);
}

/* Places that are the same chunk's from *at on, which goes on behind them. */
static uint64_t places_take(const struct places *places, size_t *at)
{
	size_t first = *at;

	while (*at < places->count && place_compare(&places->at[first], &places->at[*at]) == 0)
		++*at;
	return *at - first;
}

static uint64_t survey_read_count(MDB_val value)
{
	uint64_t count = 0;

	if (value.mv_size == sizeof(count))
		memcpy(&count, value.mv_data, sizeof(count));
	return le64toh(count);
}

/* Counts and places lie in the same order. */
static int survey_compare(const struct survey_walk *walk, struct recounts *out, struct err *err)
{
	const struct places *places = &walk->places;
	AUTO(cursor) MDB_cursor *cursor = NULL;
	MDB_val key;
	MDB_val value;
	size_t at = 0;
	int rc = mdb_cursor_open(walk->txn, walk->blobs->counts, &cursor);

	for (rc = rc ? rc : mdb_cursor_get(cursor, &key, &value, MDB_FIRST); rc == 0;
	     rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
		uint64_t uses = 0;

		if (key.mv_size != 32)
			return err_set(err, ERR_CORRUPT, "%s: a count's key of %zu bytes",
				       walk->blobs->db.path, key.mv_size);
		while (at < places->count && memcmp(places->at[at].id, key.mv_data, 32) < 0) {
			const struct place *missed = &places->at[at];

			recounts_add(out, missed->id, places_take(places, &at));
		}
		if (at < places->count && memcmp(places->at[at].id, key.mv_data, 32) == 0)
			uses = places_take(places, &at);
		if (uses == 0 || survey_read_count(value) != uses)
			recounts_add(out, key.mv_data, uses);
	}
	while (at < places->count) {
		const struct place *missed = &places->at[at];

		recounts_add(out, missed->id, places_take(places, &at));
	}
	return rc == MDB_NOTFOUND ? 0 : db_fail(&walk->blobs->db, rc, err);
}

/* Lists of blobs that are not there; their first pages' keys differ from the last by the blob. */
static int survey_strays(const struct survey_walk *walk, struct recounts *out, struct err *err)
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
		if (blob_entry_find(walk->blobs, walk->txn, &blob, &entry, &ignored) == 0)
			recounts_add(out, blob.bytes, 0);
	}
	return rc == MDB_NOTFOUND ? 0 : db_fail(&walk->blobs->db, rc, err);
}

static void survey_add_chunk_bytes(const struct places *places, struct survey *out)
{
	for (size_t at = 0; at < places->count;) {
		out->bytes += places->at[at].size;
		(void)places_take(places, &at);
	}
}

int survey_read(const struct store_blobs *blobs, struct survey *out, struct err *err)
{
	AUTO(txn) MDB_txn *txn = NULL;
	struct survey_walk walk = {.blobs = blobs, .out = out};
	struct recounts recounts = {0};
	int result;

	if (db_begin(&blobs->db, DB_READ, &txn, err) < 0)
		return -1;
	walk.txn = txn;
	result = survey_entries(&walk, err);
	if (result == 0)
		result = survey_compare(&walk, &recounts, err);
	out->wrong_counts = recounts.count;
	recounts.count = 0;
	if (result == 0)
		result = survey_strays(&walk, &recounts, err);
	out->wrong_counts += recounts.count;
	survey_add_chunk_bytes(&walk.places, out);
	free(walk.places.at);
	free(recounts.at);
	return result;
}

void survey_done(struct survey *survey)
{
	free(survey->blobs);
	digest_set_done(&survey->damaged);
	*survey = (struct survey){0};
}

static int survey_set_count(const struct store_blobs *blobs, MDB_txn *txn,
			    const struct recount *recount, struct err *err)
{
	struct str key = {(const char *)recount->id.bytes, 32};
	uint64_t disk = htole64(recount->count);

	if (recount->count == 0)
		return db_del(&blobs->db, txn, blobs->counts, key, err) < 0 ? -1 : 0;
	return db_put(&blobs->db, txn, blobs->counts, key,
		      (struct str){(const char *)&disk, sizeof(disk)}, err);
}

static int survey_mend_all(const struct survey_walk *walk, struct recounts *recounts,
			   struct err *err)
{
	if (survey_strays(walk, recounts, err) < 0)
		return -1;
	for (size_t i = 0; i < recounts->count; i++) {
		if (blob_list_drop(walk->blobs, walk->txn, &recounts->at[i].id, err) < 0)
			return -1;
	}
	recounts->count = 0;
	if (survey_compare(walk, recounts, err) < 0)
		return -1;
	for (size_t i = 0; i < recounts->count; i++) {
		if (survey_set_count(walk->blobs, walk->txn, &recounts->at[i], err) < 0)
			return -1;
	}
	return 0;
}

int survey_mend(const struct store_blobs *blobs, MDB_txn *txn, struct err *err)
{
	struct survey_walk walk = {.blobs = blobs, .txn = txn};
	struct recounts recounts = {0};
	int result = survey_entries(&walk, err);

	if (result == 0)
		result = survey_mend_all(&walk, &recounts, err);
	free(walk.places.at);
	free(recounts.at);
	return result;
}
