/* SPDX-License-Identifier: Apache-2.0 */
/*
 * receipt.c - a table of blobs/.
 *
 *	table     key                                value
 *	receipts  name, NUL, u8: enum                u32: 1, u32: 0, u64: bytes,
 *	          digest_algorithm, digest           i64: milliseconds since 1970,
 *	          (32 or 64)                         sha256 (32)
 *
 * Numbers are little-endian.
 */
#include "layers/receipt_priv.h"

#include <assert.h>
#include <endian.h>

#define RECEIPT_VERSION 1
#define RECEIPT_KEY_MAX (RECEIPT_NAME_MAX + 1 + sizeof(struct digest) + 1)

struct receipt_value {
	uint32_t version;
	uint32_t none;
	uint64_t size;
	uint64_t at_ms;
	uint8_t blob[32];
};

struct receipt_key {
	char bytes[RECEIPT_KEY_MAX];
	size_t len;
};

static size_t receipt_digest_bytes(const struct digest *digest)
{
	return 1 + (digest->algorithm == DIGEST_SHA512 ? 64 : 32);
}

/* digest is NULL for the start of all keys of a name. */
static void receipt_key_make(struct str name, const struct digest *digest, struct receipt_key *out)
{
	assert(name.len > 0 && name.len <= RECEIPT_NAME_MAX);
	memcpy(out->bytes, name.ptr, name.len);
	out->bytes[name.len] = '\0';
	out->len = name.len + 1;
	if (!digest)
		return;
	memcpy(out->bytes + out->len, digest, receipt_digest_bytes(digest));
	out->len += receipt_digest_bytes(digest);
}

static struct str receipt_key_str(const struct receipt_key *key)
{
	return (struct str){key->bytes, key->len};
}

static int receipt_parse_key(struct str key, struct receipt *out)
{
	struct str name;

	if (!str_cut(&key, '\0', &name) || name.len == 0 || name.len > RECEIPT_NAME_MAX ||
	    key.len == 0 || key.len > sizeof(out->digest))
		return -1;
	memcpy(out->name, name.ptr, name.len);
	out->name[name.len] = '\0';
	out->digest = (struct digest){0};
	memcpy(&out->digest, key.ptr, key.len);
	return out->digest.algorithm <= DIGEST_SHA512 &&
			       key.len == receipt_digest_bytes(&out->digest)
		       ? 0
		       : -1;
}

static int receipt_parse_value(struct str value, struct receipt *out)
{
	struct receipt_value disk;

	if (value.len != sizeof(disk))
		return -1;
	memcpy(&disk, value.ptr, sizeof(disk));
	if (le32toh(disk.version) != RECEIPT_VERSION)
		return -1;
	out->size = le64toh(disk.size);
	out->at_ms = (int64_t)le64toh(disk.at_ms);
	out->blob = (struct digest){.algorithm = DIGEST_SHA256};
	memcpy(out->blob.bytes, disk.blob, sizeof(disk.blob));
	return 0;
}

static int receipt_parse(const struct store_blobs *blobs, struct str key, struct str value,
			 struct receipt *out, struct err *err)
{
	if (receipt_parse_key(key, out) == 0 && receipt_parse_value(value, out) == 0)
		return 0;
	return err_set(err, ERR_CORRUPT, "%s: a receipt is damaged", blobs->db.path);
}

int receipt_put(const struct store_blobs *blobs, MDB_txn *txn, const struct batch_blob *blob,
		struct err *err)
{
	struct receipt_value disk = {.version = htole32(RECEIPT_VERSION),
				     .size = htole64(blob->size),
				     .at_ms = htole64((uint64_t)clock_now_ms())};
	struct receipt_key key;

	memcpy(disk.blob, blob->digest.bytes, sizeof(disk.blob));
	receipt_key_make(blob->receipt, blob->alias ? blob->alias : &blob->digest, &key);
	return db_put(&blobs->db, txn, blobs->receipts, receipt_key_str(&key),
		      (struct str){(const char *)&disk, sizeof(disk)}, err);
}

/* A name that is too long has none. */
static int receipt_get(const struct store_blobs *blobs, MDB_txn *txn, struct str name,
		       const struct digest *digest, struct receipt *out, struct err *err)
{
	struct receipt_key key;
	struct str value;
	int found;

	if (name.len == 0 || name.len > RECEIPT_NAME_MAX)
		return 0;
	receipt_key_make(name, digest, &key);
	found = db_get(&blobs->db, txn, blobs->receipts, receipt_key_str(&key), &value, err);
	if (found == 1 && receipt_parse(blobs, receipt_key_str(&key), value, out, err) < 0)
		return -1;
	return found;
}

int receipt_find(struct store *store, struct str name, const struct digest *digest,
		 struct receipt *out, struct err *err)
{
	const struct store_blobs *blobs;
	AUTO(txn) MDB_txn *txn = NULL;

	if (store_blobs(store, &blobs, err) < 0 || db_begin(&blobs->db, DB_READ, &txn, err) < 0)
		return -1;
	return receipt_get(blobs, txn, name, digest, out, err);
}

/* From the first whose key is not before this one; how many. */
static int receipt_read_from(const struct store_blobs *blobs, MDB_txn *txn,
			     const struct receipt_key *from, struct receipt *out, int max,
			     struct err *err)
{
	AUTO(cursor) MDB_cursor *cursor = NULL;
	MDB_val key = db_val(receipt_key_str(from));
	MDB_val value;
	int count = 0;
	int rc = mdb_cursor_open(txn, blobs->receipts, &cursor);

	rc = rc ? rc : mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
	while (rc == 0 && count < max) {
		if (receipt_parse(blobs, db_str(key), db_str(value), &out[count], err) < 0)
			return -1;
		count++;
		rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
	}
	return rc == 0 || rc == MDB_NOTFOUND ? count : db_fail(&blobs->db, rc, err);
}

int receipt_read(struct store *store, const struct receipt *after, struct receipt *out, int max,
		 struct err *err)
{
	struct receipt_key from = {.len = 1};
	const struct store_blobs *blobs;
	AUTO(txn) MDB_txn *txn = NULL;

	if (after) {
		receipt_key_make(str_of(after->name), &after->digest, &from);
		from.bytes[from.len++] = '\0'; /* the first key that could come next */
	}
	if (store_blobs(store, &blobs, err) < 0 || db_begin(&blobs->db, DB_READ, &txn, err) < 0)
		return -1;
	return receipt_read_from(blobs, txn, &from, out, max, err);
}

int receipt_exists(struct store *store, struct str name, struct err *err)
{
	struct receipt_key from;
	const struct store_blobs *blobs;
	AUTO(txn) MDB_txn *txn = NULL;
	struct receipt first;
	int count;

	if (name.len == 0 || name.len > RECEIPT_NAME_MAX)
		return 0;
	receipt_key_make(name, NULL, &from);
	if (store_blobs(store, &blobs, err) < 0 || db_begin(&blobs->db, DB_READ, &txn, err) < 0)
		return -1;
	count = receipt_read_from(blobs, txn, &from, &first, 1, err);
	return count == 1 ? str_equal(str_of(first.name), name) : count;
}

int receipt_next_name(struct store *store, char name[static RECEIPT_NAME_MAX + 1], struct err *err)
{
	struct receipt_key from = {.len = strlen(name)};
	const struct store_blobs *blobs;
	AUTO(txn) MDB_txn *txn = NULL;
	struct receipt next;
	int count;

	memcpy(from.bytes, name, from.len);
	from.bytes[from.len++] = '\1'; /* behind the NUL that ends this name, and before others */
	if (store_blobs(store, &blobs, err) < 0 || db_begin(&blobs->db, DB_READ, &txn, err) < 0)
		return -1;
	count = receipt_read_from(blobs, txn, &from, &next, 1, err);
	if (count == 1)
		memcpy(name, next.name, sizeof(next.name));
	return count;
}

static int receipt_del(const struct store_blobs *blobs, MDB_txn *txn, struct str name,
		       const struct digest *digest, struct err *err)
{
	struct receipt_key key;

	receipt_key_make(name, digest, &key);
	return db_del(&blobs->db, txn, blobs->receipts, receipt_key_str(&key), err);
}

static bool receipt_is_same(const struct receipt *a, const struct receipt *b)
{
	return a->at_ms == b->at_ms && a->size == b->size && digest_equal(&a->blob, &b->blob);
}

int receipt_take_back(struct store *store, const struct receipt *receipts, int count,
		      struct err *err)
{
	const struct store_blobs *blobs;
	AUTO(txn) MDB_txn *txn = NULL;

	if (store_blobs(store, &blobs, err) < 0 || db_begin(&blobs->db, DB_WRITE, &txn, err) < 0)
		return -1;
	for (int i = 0; i < count; i++) {
		const struct receipt *receipt = &receipts[i];
		struct str name = str_of(receipt->name);
		struct receipt now;
		int found = receipt_get(blobs, txn, name, &receipt->digest, &now, err);

		if (found < 0 || (found == 1 && receipt_is_same(&now, receipt) &&
				  receipt_del(blobs, txn, name, &receipt->digest, err) < 0))
			return -1;
	}
	return db_commit(&blobs->db, steal_ptr(&txn), err);
}

int receipt_drop(struct store *store, struct str name, const struct digest *digest, struct err *err)
{
	const struct store_blobs *blobs;
	AUTO(txn) MDB_txn *txn = NULL;
	struct receipt there;
	int found = receipt_find(store, name, digest, &there, err); /* mostly there is none */

	if (found <= 0)
		return found;
	if (store_blobs(store, &blobs, err) < 0 || db_begin(&blobs->db, DB_WRITE, &txn, err) < 0)
		return -1;
	found = receipt_del(blobs, txn, name, digest, err);
	if (found <= 0)
		return found;
	return db_commit(&blobs->db, steal_ptr(&txn), err) < 0 ? -1 : 1;
}
