/* SPDX-License-Identifier: Apache-2.0 */
/* blobs.h - what tests ask of blobs, and no program does. */
#pragma once

#include "layers/blob_priv.h"
#include "tests/check.h"

/* Whether each chunk has its name, and all of them the blob's; ERR_CORRUPT if not. */
static inline int blob_check(struct store *store, const struct digest *digest, struct err *err)
{
	AUTO(blob_reader) struct blob_reader *reader = NULL;
	AUTO(hasher) struct hasher whole = {0};
	struct blob_chunk chunk;
	struct digest found;
	struct str bytes;
	int more;

	if (blob_reader_open(store, digest, &reader, err) < 0)
		return -1;
	hasher_init_as(&whole, digest->algorithm);
	while ((more = blob_reader_next(reader, &bytes, &chunk, err)) == 1) {
		digest_of(bytes, &found);
		if (!digest_equal(&found, &chunk.id))
			return err_set(err, ERR_CORRUPT, "a chunk holds other bytes");
		hasher_add(&whole, bytes);
	}
	if (more < 0)
		return -1;
	hasher_final(&whole, &found);
	return digest_equal(&found, digest) ? 0 : err_set(err, ERR_CORRUPT, "another blob");
}

static inline int blob_count_one(void *ctx, const struct blob_entry *entry, struct err *err)
{
	(void)entry, (void)err;
	++*(size_t *)ctx;
	return 0;
}

static inline size_t blob_count(struct store *store)
{
	const struct store_blobs *blobs;
	AUTO(txn) MDB_txn *txn = NULL;
	size_t count = 0;
	struct err err = {0};

	check_ok(store_blobs(store, &blobs, &err), &err);
	check_ok(db_begin(&blobs->db, DB_READ, &txn, &err), &err);
	check_ok(blob_entry_each(blobs, txn, blob_count_one, &count, &err), &err);
	return count;
}
