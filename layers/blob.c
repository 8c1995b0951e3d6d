/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/blob_priv.h"

static int blob_look_up(struct store *store, const struct digest *digest, struct blob_entry *out,
			struct err *err)
{
	const struct store_blobs *blobs;
	AUTO(txn) MDB_txn *txn = NULL;

	if (store_blobs(store, &blobs, err) < 0 || db_begin(&blobs->db, DB_READ, &txn, err) < 0)
		return -1;
	return blob_entry_find(blobs, txn, digest, out, err);
}

int blob_find(struct store *store, const struct digest *digest, struct blob_info *out,
	      struct err *err)
{
	struct blob_entry entry;
	int found = blob_look_up(store, digest, &entry, err);

	if (found == 1)
		*out = (struct blob_info){*digest, entry.size, entry.chunks};
	return found;
}

int blob_find_id(struct store *store, const struct digest *digest, struct digest *out,
		 struct err *err)
{
	struct blob_entry entry;
	int found = blob_look_up(store, digest, &entry, err);

	if (found == 1)
		*out = entry.digest;
	return found;
}

struct blob_gathering {
	const struct store_blobs *blobs;
	MDB_txn *txn;
	const struct digest *digest;
	struct buf *out;
};

static int blob_gather(void *ctx, const struct blob_chunk *chunk, struct err *err)
{
	const struct blob_gathering *gathering = ctx;
	char text[DIGEST_TEXT_MAX];
	struct str bytes;
	int found = chunk_find(gathering->blobs, gathering->txn, &chunk->id, &bytes, err);

	if (found < 0)
		return -1;
	if (found == 0 || bytes.len != chunk->size)
		return err_set(err, ERR_CORRUPT, "blob %s: a chunk %s; " BLOB_ADVICE,
			       digest_format(gathering->digest, text),
			       found == 0 ? "is missing" : "has another size");
	return buf_add(gathering->out, bytes, err);
}

int blob_read_all(struct store *store, const struct digest *digest, struct buf *out,
		  struct err *err)
{
	const struct store_blobs *blobs;
	AUTO(txn) MDB_txn *txn = NULL;
	struct blob_entry entry;
	char text[DIGEST_TEXT_MAX];
	int found;

	if (store_blobs(store, &blobs, err) < 0 || db_begin(&blobs->db, DB_READ, &txn, err) < 0)
		return -1;
	found = blob_entry_find(blobs, txn, digest, &entry, err);
	if (found == 0)
		return err_set(err, ERR_NOT_FOUND, "no blob %s", digest_format(digest, text));
	if (found < 0)
		return -1;
	struct blob_gathering gathering = {blobs, txn, digest, out};

	return blob_list_each(blobs, txn, &entry, blob_gather, &gathering, err);
}

int blob_put_as(struct store *store, struct str bytes, const struct digest *name,
		struct digest *out, struct err *err)
{
	AUTO(blob_writer) struct blob_writer *writer = NULL;
	struct blob_info info;

	if (blob_writer_open(store, &writer, err) < 0)
		return -1;
	blob_writer_hash_as(writer, name->algorithm);
	if (blob_writer_add(writer, bytes, err) < 0 ||
	    blob_writer_commit(writer, name, &info, err) < 0)
		return -1;
	*out = info.digest;
	return 0;
}

int blob_put(struct store *store, struct str bytes, struct digest *out, struct err *err)
{
	struct digest digest;

	digest_of(bytes, &digest);
	return blob_put_as(store, bytes, &digest, out, err);
}
