/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blob_reader.c - a blob's chunks in order. What is lent is copied out of the
 * map, so that no read transaction outlives a call.
 */
#include "layers/blob_priv.h"

struct blob_reader {
	const struct store_blobs *blobs;
	struct blob_info info;
	struct blob_entry entry;
	uint64_t next; /* chunk */
	struct buf bytes;
	size_t page_count;
	struct blob_ref page[BLOB_PAGE_REFS];
};

int blob_reader_open(struct store *store, const struct digest *digest, struct blob_reader **out,
		     struct err *err)
{
	AUTO(blob_reader) struct blob_reader *reader = calloc(1, sizeof(*reader));
	char text[DIGEST_TEXT_MAX];
	AUTO(txn) MDB_txn *txn = NULL;
	int found;

	if (!reader)
		abort();
	reader->bytes = BUF_INIT(BLOB_CHUNK_MAX);
	if (store_blobs(store, &reader->blobs, err) < 0 ||
	    db_begin(&reader->blobs->db, DB_READ, &txn, err) < 0)
		return -1;
	found = blob_entry_find(reader->blobs, txn, digest, &reader->entry, err);
	if (found < 0)
		return -1;
	if (found == 0)
		return err_set(err, ERR_NOT_FOUND, "no blob %s", digest_format(digest, text));
	reader->info = (struct blob_info){*digest, reader->entry.size, reader->entry.chunks};
	*out = steal_ptr(&reader);
	return 0;
}

void blob_reader_close(struct blob_reader *reader)
{
	if (!reader)
		return;
	buf_done(&reader->bytes);
	free(reader);
}

const struct blob_info *blob_reader_info(const struct blob_reader *reader)
{
	return &reader->info;
}

static int blob_reader_wrong(const struct blob_reader *reader, const struct blob_chunk *chunk,
			     const char *what, struct err *err)
{
	char blob[DIGEST_TEXT_MAX];
	char id[DIGEST_TEXT_MAX];

	return err_set(err, ERR_CORRUPT, "blob %s: chunk %s %s; " BLOB_ADVICE,
		       digest_format(&reader->info.digest, blob), digest_format(&chunk->id, id),
		       what);
}

/* The next chunk, and its bytes in the map for as long as the transaction. */
static int blob_reader_find(struct blob_reader *reader, MDB_txn *txn, struct blob_chunk *chunk,
			    struct str *out, struct err *err)
{
	size_t at = reader->next % BLOB_PAGE_REFS;
	int found;

	if (at == 0 &&
	    blob_entry_page(reader->blobs, txn, &reader->entry, reader->next / BLOB_PAGE_REFS,
			    reader->page, &reader->page_count, err) < 0)
		return -1;
	blob_ref_read(&reader->page[at], chunk);
	found = chunk_find(reader->blobs, txn, &chunk->id, out, err);
	if (found < 0)
		return -1;
	if (found == 0)
		return blob_reader_wrong(reader, chunk, "is missing", err);
	if (out->len != chunk->size)
		return blob_reader_wrong(reader, chunk, "has another size", err);
	reader->next++;
	return 0;
}

static int blob_reader_load(struct blob_reader *reader, struct blob_chunk *chunk, struct err *err)
{
	AUTO(txn) MDB_txn *txn = NULL;
	struct str bytes;

	if (db_begin(&reader->blobs->db, DB_READ, &txn, err) < 0 ||
	    blob_reader_find(reader, txn, chunk, &bytes, err) < 0)
		return -1;
	buf_clear(&reader->bytes);
	return buf_add(&reader->bytes, bytes, err);
}

int blob_reader_next(struct blob_reader *reader, struct str *out, struct blob_chunk *out_chunk,
		     struct err *err)
{
	struct blob_chunk chunk;

	if (reader->next == reader->entry.chunks)
		return 0;
	if (blob_reader_load(reader, &chunk, err) < 0)
		return -1;
	*out = buf_str(&reader->bytes);
	if (out_chunk)
		*out_chunk = chunk;
	return 1;
}

static int blob_reader_judge(struct hasher *hasher, const struct digest *digest, struct err *err)
{
	char text[DIGEST_TEXT_MAX];
	struct digest found;

	hasher_final(hasher, &found);
	if (digest_equal(&found, digest))
		return 0;
	return err_set(err, ERR_CORRUPT, "blob %s: its bytes have another digest; " BLOB_ADVICE,
		       digest_format(digest, text));
}

int blob_copy(struct store *store, const struct digest *digest, struct sink *out, struct err *err)
{
	AUTO(blob_reader) struct blob_reader *reader = NULL;
	AUTO(hasher) struct hasher hasher = {0};
	struct str bytes;
	int more;

	if (blob_reader_open(store, digest, &reader, err) < 0)
		return -1;
	hasher_init_as(&hasher, digest->algorithm);
	while ((more = blob_reader_next(reader, &bytes, NULL, err)) == 1) {
		hasher_add(&hasher, bytes);
		if (out->write(out, bytes, err) < 0)
			return -1;
	}
	return more < 0 ? -1 : blob_reader_judge(&hasher, digest, err);
}

static int blob_reader_hash(struct blob_reader *reader, struct hasher *hasher, struct err *err)
{
	AUTO(txn) MDB_txn *txn = NULL;
	struct blob_chunk chunk;
	struct str bytes;

	if (db_begin(&reader->blobs->db, DB_READ, &txn, err) < 0 ||
	    blob_reader_find(reader, txn, &chunk, &bytes, err) < 0)
		return -1;
	hasher_add(hasher, bytes);
	return 0;
}

int blob_check_digest(struct store *store, const struct digest *digest, const struct cancel *stop,
		      struct err *err)
{
	AUTO(blob_reader) struct blob_reader *reader = NULL;
	AUTO(hasher) struct hasher hasher = {0};

	if (blob_reader_open(store, digest, &reader, err) < 0)
		return -1;
	hasher_init_as(&hasher, digest->algorithm);
	while (reader->next < reader->entry.chunks) {
		if (cancel_check(stop, err) < 0 || blob_reader_hash(reader, &hasher, err) < 0)
			return -1;
	}
	return blob_reader_judge(&hasher, digest, err);
}
