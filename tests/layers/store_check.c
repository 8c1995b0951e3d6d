/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/layers/store_check.h"

#include "tests/layers/blobs.h"

#define CHECK_CHUNKS_MAX ((size_t)65536)

struct tally {
	struct store *store;
	size_t blobs;
	size_t count;
	struct digest ids[CHECK_CHUNKS_MAX];
};

static int tally_blob(void *ctx, const struct blob_entry *entry, struct err *err)
{
	struct tally *tally = ctx;
	AUTO(blob_reader) struct blob_reader *reader = NULL;
	struct blob_chunk chunk;
	struct str bytes;

	if (blob_check(tally->store, &entry->digest, err) < 0 ||
	    blob_reader_open(tally->store, &entry->digest, &reader, err) < 0)
		return -1;
	tally->blobs++;
	while (blob_reader_next(reader, &bytes, &chunk, err) == 1) {
		assert_true(tally->count < CHECK_CHUNKS_MAX);
		tally->ids[tally->count++] = chunk.id;
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct digest));
}

/* Go through ids, which are sorted, and through the table, which is too. */
static void compare_counts(const struct tally *tally, const struct store_blobs *blobs, MDB_txn *txn)
{
	MDB_stat stat;
	size_t distinct = 0;
	struct err err = {0};

	for (size_t i = 0; i < tally->count; distinct++) {
		size_t same = 1;
		uint64_t count;

		while (i + same < tally->count &&
		       compare(&tally->ids[i], &tally->ids[i + same]) == 0)
			same++;
		check_ok(chunk_count(blobs, txn, &tally->ids[i], &count, &err), &err);
		assert_int_equal(count, same);
		i += same;
	}
	assert_int_equal(mdb_stat(txn, blobs->counts, &stat), 0);
	assert_int_equal(stat.ms_entries, distinct);
}

size_t store_check(struct store *store)
{
	auto_free struct tally *tally = calloc(1, sizeof(*tally));
	const struct store_blobs *blobs;
	AUTO(txn) MDB_txn *txn = NULL;
	struct err err = {0};

	assert_non_null(tally);
	tally->store = store;
	check_ok(store_blobs(store, &blobs, &err), &err);
	check_ok(db_begin(&blobs->db, DB_READ, &txn, &err), &err);
	check_ok(blob_entry_each(blobs, txn, tally_blob, tally, &err), &err);
	qsort(tally->ids, tally->count, sizeof(tally->ids[0]), compare);
	compare_counts(tally, blobs, txn);
	return tally->blobs;
}
