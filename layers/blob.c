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
