/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/blob_priv.h"

#define BLOB_EACH_PAGE 256 /* blobs a transaction, so that none spans a caller's wait */

int blob_find(struct store *store, const struct digest *digest, struct blob_info *out,
	      struct err *err)
{
	const struct store_blobs *blobs;
	AUTO(txn) MDB_txn *txn = NULL;
	struct blob_entry entry;
	int found;

	if (store_blobs(store, &blobs, err) < 0 || db_begin(&blobs->db, DB_READ, &txn, err) < 0)
		return -1;
	found = blob_entry_find(blobs, txn, digest, &entry, err);
	if (found == 1)
		*out = (struct blob_info){*digest, entry.size, entry.chunks};
	return found;
}

int blob_read_all(struct store *store, const struct digest *digest, struct buf *out,
		  struct err *err)
{
	AUTO(blob_reader) struct blob_reader *reader = NULL;
	struct str bytes;
	int more;

	if (blob_reader_open(store, digest, &reader, err) < 0)
		return -1;
	while ((more = blob_reader_next(reader, &bytes, NULL, err)) == 1) {
		if (buf_add(out, bytes, err) < 0)
			return -1;
	}
	return more;
}

int blob_put(struct store *store, struct str bytes, struct digest *out, struct err *err)
{
	AUTO(blob_writer) struct blob_writer *writer = NULL;
	struct blob_info info;
	struct digest digest;

	digest_of(bytes, &digest);
	if (blob_writer_open(store, &writer, err) < 0 || blob_writer_add(writer, bytes, err) < 0 ||
	    blob_writer_commit(writer, &digest, &info, err) < 0)
		return -1;
	*out = digest;
	return 0;
}

struct blob_list {
	size_t count;
	struct blob_info infos[BLOB_EACH_PAGE];
};

/* The blobs behind *after in the table, aliases left out. */
static int blob_each_page(const struct store_blobs *blobs, const struct digest *after,
			  struct blob_list *out, struct err *err)
{
	AUTO(txn) MDB_txn *txn = NULL;
	AUTO(cursor) MDB_cursor *cursor = NULL;
	struct digest digest = *after;
	MDB_val key = {1 + 32, &digest};
	MDB_val value;
	int rc;

	out->count = 0;
	if (db_begin(&blobs->db, DB_READ, &txn, err) < 0)
		return -1;
	rc = mdb_cursor_open(txn, blobs->blobs, &cursor);
	for (rc = rc ? rc : mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
	     rc == 0 && out->count < BLOB_EACH_PAGE;
	     rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
		struct blob_entry entry;
		int found;

		if (key.mv_size != 1 + 32) /* sha512: the table's second half */
			break;
		digest = (struct digest){0};
		memcpy(&digest, key.mv_data, key.mv_size);
		if (digest_equal(&digest, after))
			continue;
		found = blob_entry_find(blobs, txn, &digest, &entry, err);
		if (found < 0)
			return -1;
		out->infos[out->count++] = (struct blob_info){digest, entry.size, entry.chunks};
	}
	return rc == 0 || rc == MDB_NOTFOUND ? 0 : db_fail(&blobs->db, rc, err);
}

int blob_each(struct store *store, blob_each_fn *fn, void *ctx, struct err *err)
{
	auto_free struct blob_list *list = malloc(sizeof(*list));
	struct digest after = {.algorithm = DIGEST_SHA256};
	const struct store_blobs *blobs;

	if (!list)
		abort();
	if (store_blobs(store, &blobs, err) < 0)
		return -1;
	do {
		if (blob_each_page(blobs, &after, list, err) < 0)
			return -1;
		for (size_t i = 0; i < list->count; i++) {
			int rc = fn(ctx, &list->infos[i], err);

			if (rc != 0)
				return rc;
			after = list->infos[i].digest;
		}
	} while (list->count == BLOB_EACH_PAGE);
	return 0;
}
