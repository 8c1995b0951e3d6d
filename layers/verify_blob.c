/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_blob.c - one blob, page by page of its list: no transaction spans more
 * than a page, so the blob may be collected meanwhile.
 */
#include "layers/verify_priv.h"

bool verify_chunk(const struct digest *id, struct str bytes)
{
	struct digest found;

	digest_of(bytes, &found);
	return digest_equal(&found, id);
}

/* The chunks of a page of a blob's list into the hasher: 1, 0 one is missing, -1. */
static int verify_page(const struct store_blobs *blobs, const struct blob_entry *entry,
		       uint64_t page, struct hasher *hasher, struct err *err)
{
	auto_free struct blob_ref *refs = malloc(BLOB_PAGE_REFS * sizeof(*refs));
	AUTO(txn) MDB_txn *txn = NULL;
	struct blob_entry now;
	size_t count;

	if (!refs)
		abort();
	if (db_begin(&blobs->db, DB_READ, &txn, err) < 0)
		return -1;
	if (blob_entry_find(blobs, txn, &entry->digest, &now, err) <= 0)
		return -2; /* collected meanwhile */
	if (blob_entry_page(blobs, txn, entry, page, refs, &count, err) < 0)
		return err->kind == ERR_CORRUPT ? 0 : -1;
	for (size_t i = 0; i < count; i++) {
		struct blob_chunk chunk;
		struct str bytes;
		int found;

		blob_ref_read(&refs[i], &chunk);
		found = chunk_find(blobs, txn, &chunk.id, &bytes, err);
		if (found <= 0 || bytes.len != chunk.size)
			return found < 0 ? -1 : 0;
		hasher_add(hasher, bytes);
	}
	return 1;
}

/* 1, 0 or -1 as verify_blob(); -2 it is gone. */
static int verify_pages(const struct store_blobs *blobs, const struct blob_entry *entry,
			const struct cancel *cancel, struct hasher *hasher, struct err *err)
{
	for (uint64_t page = 0; page * BLOB_PAGE_REFS < entry->chunks; page++) {
		int whole = cancel_check(cancel, err) < 0
				    ? -1
				    : verify_page(blobs, entry, page, hasher, err);

		if (whole != 1)
			return whole;
	}
	return 1;
}

static int verify_find_entry(const struct store_blobs *blobs, const struct digest *digest,
			     struct blob_entry *out, struct err *err)
{
	AUTO(txn) MDB_txn *txn = NULL;

	if (db_begin(&blobs->db, DB_READ, &txn, err) < 0)
		return -1;
	return blob_entry_find(blobs, txn, digest, out, err);
}

int verify_blob(const struct store_blobs *blobs, const struct digest *digest,
		const struct cancel *cancel, struct err *err)
{
	AUTO(hasher) struct hasher hasher = {0};
	struct blob_entry entry;
	struct digest found;
	int whole = verify_find_entry(blobs, digest, &entry, err);

	if (whole < 0)
		return err->kind == ERR_CORRUPT ? 0 : -1;
	if (whole == 0)
		return 1;
	hasher_init(&hasher);
	whole = verify_pages(blobs, &entry, cancel, &hasher, err);
	if (whole <= 0)
		return whole == -2 ? 1 : whole;
	hasher_final(&hasher, &found);
	return digest_equal(&found, digest);
}
