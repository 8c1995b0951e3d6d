/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blob_entry.c - two tables of blobs/.
 *
 *	table  key                                    value
 *	blobs  u8: enum digest_algorithm, digest      u32: 1, u32: stamp, u64: bytes,
 *	       (32 or 64)                             u64: chunks, sha256 (32)
 *	pages  sha256 of the blob (32),               1 to 1,024 times: sha256 (32),
 *	       u32 big-endian: page, from 0           u32: bytes, u32: plain bytes
 *
 * Numbers are little-endian where nothing else is said. An entry by another
 * digest is an alias, of which only the sha256 counts: while that one has no
 * entry, an alias is none, and a collection removes it (collect_blobs.c).
 */
#include "layers/blob_priv.h"

#include <endian.h>

#define BLOB_ENTRY_VERSION 1

struct blob_entry_value {
	uint32_t version;
	uint32_t stamp;
	uint64_t size;
	uint64_t chunks;
	uint8_t digest[32];
};

struct blob_page_key {
	uint8_t digest[32];
	uint32_t page;
};

static struct str blob_entry_key(const struct digest *digest)
{
	size_t len = digest->algorithm == DIGEST_SHA512 ? 64 : 32;

	/* algorithm and bytes are neighbours in struct digest, and chars */
	return (struct str){(const char *)digest, 1 + len};
}

void blob_ref_make(const struct blob_chunk *chunk, struct blob_ref *out)
{
	memcpy(out->id, chunk->id.bytes, sizeof(out->id));
	out->size = htole32(chunk->size);
	out->plain_size = htole32(chunk->plain_size);
}

void blob_ref_read(const struct blob_ref *ref, struct blob_chunk *out)
{
	*out = (struct blob_chunk){.id = {.algorithm = DIGEST_SHA256},
				   .size = le32toh(ref->size),
				   .plain_size = le32toh(ref->plain_size)};
	memcpy(out->id.bytes, ref->id, sizeof(ref->id));
}

static int blob_entry_bad(const struct store_blobs *blobs, const struct digest *digest,
			  const char *what, struct err *err)
{
	char text[DIGEST_TEXT_MAX];

	return err_set(err, ERR_CORRUPT, "%s: blob %s: %s; " BLOB_ADVICE, blobs->db.path,
		       digest_format(digest, text), what);
}

static int blob_entry_read(const struct store_blobs *blobs, MDB_txn *txn,
			   const struct digest *digest, struct blob_entry *out, struct err *err)
{
	struct blob_entry_value disk;
	struct str value;
	int found = db_get(&blobs->db, txn, blobs->blobs, blob_entry_key(digest), &value, err);

	if (found <= 0)
		return found;
	if (value.len != sizeof(disk))
		return blob_entry_bad(blobs, digest, "its entry has another size", err);
	memcpy(&disk, value.ptr, sizeof(disk));
	if (le32toh(disk.version) != BLOB_ENTRY_VERSION)
		return blob_entry_bad(blobs, digest, "its entry has another version", err);
	*out = (struct blob_entry){.digest = {.algorithm = DIGEST_SHA256},
				   .size = le64toh(disk.size),
				   .chunks = le64toh(disk.chunks),
				   .stamp = le32toh(disk.stamp)};
	memcpy(out->digest.bytes, disk.digest, sizeof(disk.digest));
	return 1;
}

int blob_entry_find(const struct store_blobs *blobs, MDB_txn *txn, const struct digest *digest,
		    struct blob_entry *out, struct err *err)
{
	int found = blob_entry_read(blobs, txn, digest, out, err);

	if (found == 1 && digest->algorithm != DIGEST_SHA256) {
		const struct digest own = out->digest;

		found = blob_entry_read(blobs, txn, &own, out, err);
	}
	return found;
}

int blob_entry_each(const struct store_blobs *blobs, MDB_txn *txn, blob_entry_each_fn *fn,
		    void *ctx, struct err *err)
{
	AUTO(cursor) MDB_cursor *cursor = NULL;
	MDB_val key;
	MDB_val value;
	int rc = mdb_cursor_open(txn, blobs->blobs, &cursor);

	for (rc = rc ? rc : mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
	     rc == 0 && key.mv_size == 1 + 32; /* sha512: the table's second half */
	     rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
		struct digest digest = {0};
		struct blob_entry entry;
		int result;

		memcpy(&digest, key.mv_data, key.mv_size);
		result = blob_entry_find(blobs, txn, &digest, &entry, err);
		result = result == 1 ? fn(ctx, &entry, err) : -1;
		if (result != 0)
			return result;
	}
	return rc == 0 || rc == MDB_NOTFOUND ? 0 : db_fail(&blobs->db, rc, err);
}

static void blob_page_key_make(const struct digest *digest, uint64_t page,
			       struct blob_page_key *out)
{
	memcpy(out->digest, digest->bytes, sizeof(out->digest));
	out->page = htobe32((uint32_t)page);
}

int blob_entry_view_page(const struct store_blobs *blobs, MDB_txn *txn,
			 const struct blob_entry *entry, uint64_t page, struct str *out,
			 struct err *err)
{
	uint64_t left = entry->chunks - page * BLOB_PAGE_REFS;
	size_t count = left < BLOB_PAGE_REFS ? (size_t)left : BLOB_PAGE_REFS;
	struct blob_page_key key;
	int found;

	blob_page_key_make(&entry->digest, page, &key);
	found = db_get(&blobs->db, txn, blobs->pages, (struct str){(const char *)&key, sizeof(key)},
		       out, err);
	if (found < 0)
		return -1;
	if (found == 0)
		return blob_entry_bad(blobs, &entry->digest, "its list of chunks is missing", err);
	if (out->len != count * sizeof(struct blob_ref))
		return blob_entry_bad(blobs, &entry->digest, "its list of chunks is damaged", err);
	return 0;
}

int blob_entry_page(const struct store_blobs *blobs, MDB_txn *txn, const struct blob_entry *entry,
		    uint64_t page, struct blob_ref *out, size_t *out_count, struct err *err)
{
	struct str refs;

	if (blob_entry_view_page(blobs, txn, entry, page, &refs, err) < 0)
		return -1;
	memcpy(out, refs.ptr, refs.len);
	*out_count = refs.len / sizeof(*out);
	return 0;
}

int blob_list_each(const struct store_blobs *blobs, MDB_txn *txn, const struct blob_entry *entry,
		   blob_list_each_fn *fn, void *ctx, struct err *err)
{
	auto_free struct blob_ref *refs = malloc(BLOB_PAGE_REFS * sizeof(*refs));
	size_t count;

	if (!refs)
		abort();
	for (uint64_t page = 0; page * BLOB_PAGE_REFS < entry->chunks; page++) {
		if (blob_entry_page(blobs, txn, entry, page, refs, &count, err) < 0)
			return -1;
		for (size_t i = 0; i < count; i++) {
			struct blob_chunk chunk;
			int result;

			blob_ref_read(&refs[i], &chunk);
			result = fn(ctx, &chunk, err);
			if (result != 0)
				return result;
		}
	}
	return 0;
}

/* 1 all chunks are there, 0 one is not (and blob->err says so), -1. */
static int blob_entry_check_chunks(const struct store_blobs *blobs, MDB_txn *txn,
				   struct batch_blob *blob, struct err *err)
{
	for (size_t i = 0; i < blob->count; i++) {
		struct blob_chunk chunk;
		struct str bytes;
		int found;

		blob_ref_read(&blob->refs[i], &chunk);
		found = chunk_find(blobs, txn, &chunk.id, &bytes, err);
		if (found < 0)
			return -1;
		if (found == 1 && bytes.len == chunk.size)
			continue;
		(void)err_set(&blob->err, ERR_UNAVAILABLE,
			      "a chunk was collected while it was being used again; try again");
		return 0;
	}
	return 1;
}

static int blob_entry_put_list(const struct store_blobs *blobs, MDB_txn *txn,
			       const struct batch_blob *blob, struct err *err)
{
	for (size_t at = 0; at < blob->count; at += BLOB_PAGE_REFS) {
		size_t count =
			blob->count - at < BLOB_PAGE_REFS ? blob->count - at : BLOB_PAGE_REFS;
		struct str page = {(const char *)(blob->refs + at), count * sizeof(*blob->refs)};
		struct blob_page_key key;

		blob_page_key_make(&blob->digest, at / BLOB_PAGE_REFS, &key);
		if (db_put(&blobs->db, txn, blobs->pages,
			   (struct str){(const char *)&key, sizeof(key)}, page, err) < 0)
			return -1;
	}
	for (size_t i = 0; i < blob->count; i++) {
		struct blob_chunk chunk;

		blob_ref_read(&blob->refs[i], &chunk);
		if (chunk_count_up(blobs, txn, &chunk.id, err) < 0)
			return -1;
	}
	return 0;
}

static int blob_entry_put_value(const struct store_blobs *blobs, MDB_txn *txn,
				const struct batch_blob *blob, const struct digest *name,
				struct err *err)
{
	struct blob_entry_value disk = {.version = htole32(BLOB_ENTRY_VERSION),
					.stamp = htole32((uint32_t)mdb_txn_id(txn)),
					.size = htole64(blob->size),
					.chunks = htole64(blob->chunks)};

	memcpy(disk.digest, blob->digest.bytes, sizeof(disk.digest));
	return db_put(&blobs->db, txn, blobs->blobs, blob_entry_key(name),
		      (struct str){(const char *)&disk, sizeof(disk)}, err);
}

int blob_entry_put(const struct store_blobs *blobs, MDB_txn *txn, struct batch_blob *blob,
		   struct err *err)
{
	struct blob_entry old;
	int found = blob_entry_find(blobs, txn, &blob->digest, &old, err);

	if (found < 0)
		return -1;
	/* The list of a blob that is there stays, which may have been cut elsewhere. */
	blob->chunks = found == 1 ? old.chunks : blob->count;
	if (found == 0) {
		int whole = blob_entry_check_chunks(blobs, txn, blob, err);

		if (whole <= 0)
			return whole;
		if (blob_entry_put_list(blobs, txn, blob, err) < 0)
			return -1;
	}
	if (blob_entry_put_value(blobs, txn, blob, &blob->digest, err) < 0)
		return -1;
	if (!blob->alias)
		return 0;
	return blob_entry_put_value(blobs, txn, blob, blob->alias, err);
}

int blob_stamp_now(const struct store_blobs *blobs, uint32_t *out, struct err *err)
{
	MDB_envinfo info;
	int rc = mdb_env_info(blobs->db.env, &info);

	if (rc != 0)
		return db_fail(&blobs->db, rc, err);
	*out = (uint32_t)info.me_last_txnid;
	return 0;
}

struct blob_del {
	const struct store_blobs *blobs;
	MDB_txn *txn;
};

static int blob_del_chunk(void *ctx, const struct blob_chunk *chunk, struct err *err)
{
	const struct blob_del *del = ctx;

	return chunk_count_down(del->blobs, del->txn, &chunk->id, err);
}

/* 1 the first page that is left is gone, 0 there is none, -1. */
static int blob_list_drop_one(const struct store_blobs *blobs, MDB_txn *txn, struct str prefix,
			      struct err *err)
{
	AUTO(cursor) MDB_cursor *cursor = NULL;
	MDB_val key = db_val(prefix);
	MDB_val value;
	int rc = mdb_cursor_open(txn, blobs->pages, &cursor);

	rc = rc ? rc : mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
	if (rc == MDB_NOTFOUND || (rc == 0 && !str_starts(db_str(key), prefix)))
		return 0;
	rc = rc ? rc : mdb_cursor_del(cursor, 0);
	return rc == 0 ? 1 : db_fail(&blobs->db, rc, err);
}

int blob_list_drop(const struct store_blobs *blobs, MDB_txn *txn, const struct digest *digest,
		   struct err *err)
{
	struct str prefix = {(const char *)digest->bytes, 32};
	int more;

	do {
		more = blob_list_drop_one(blobs, txn, prefix, err);
	} while (more == 1);
	return more;
}

int blob_alias_drop(const struct store_blobs *blobs, MDB_txn *txn, const struct digest *digest,
		    struct err *err)
{
	struct blob_entry entry;
	int found = blob_entry_find(blobs, txn, digest, &entry, err);

	return found != 0 ? found
			  : db_del(&blobs->db, txn, blobs->blobs, blob_entry_key(digest), err);
}

int blob_entry_drop(const struct store_blobs *blobs, MDB_txn *txn, const struct digest *digest,
		    struct err *err)
{
	if (blob_list_drop(blobs, txn, digest, err) < 0 ||
	    db_del(&blobs->db, txn, blobs->blobs, blob_entry_key(digest), err) < 0)
		return -1;
	return 0;
}

int blob_entry_del(const struct store_blobs *blobs, MDB_txn *txn, const struct blob_entry *entry,
		   struct err *err)
{
	struct blob_del del = {blobs, txn};

	if (blob_list_each(blobs, txn, entry, blob_del_chunk, &del, err) < 0)
		return -1;
	return blob_entry_drop(blobs, txn, &entry->digest, err);
}
