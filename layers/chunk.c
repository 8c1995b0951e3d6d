/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chunk.c - three tables of blobs/.
 *
 *	table    key                                 value
 *	chunks   sha256 of the bytes (32)            the bytes, 1 to 1 MiB
 *	counts   sha256 of the bytes (32)            u64: places in blobs that hold it
 *	frames   codec name, NUL, fingerprint of     sha256 of the frame (32),
 *	         the plain bytes (16)                u32: bytes of the plain
 *
 * Numbers are little-endian. A chunk without a count is garbage once no write
 * session is open (store_priv.h).
 */
#include "layers/chunk_priv.h"

#include <assert.h>
#include <endian.h>

#define CHUNK_ID_BYTES ((size_t)32)

struct chunk_frame_value {
	uint8_t id[CHUNK_ID_BYTES];
	uint32_t plain_size;
};

static struct str chunk_key(const struct digest *id)
{
	assert(id->algorithm == DIGEST_SHA256);
	return (struct str){(const char *)id->bytes, CHUNK_ID_BYTES};
}

int chunk_find(const struct store_blobs *blobs, MDB_txn *txn, const struct digest *id,
	       struct str *out, struct err *err)
{
	return db_get(&blobs->db, txn, blobs->chunks, chunk_key(id), out, err);
}

int chunk_put(const struct store_blobs *blobs, MDB_txn *txn, const struct digest *id,
	      struct str bytes, struct err *err)
{
	MDB_val key = db_val(chunk_key(id));
	MDB_val value = db_val(bytes);
	int rc = mdb_put(txn, blobs->chunks, &key, &value, MDB_NOOVERWRITE);

	return rc == 0 || rc == MDB_KEYEXIST ? 0 : db_fail(&blobs->db, rc, err);
}

int chunk_count(const struct store_blobs *blobs, MDB_txn *txn, const struct digest *id,
		uint64_t *out, struct err *err)
{
	struct str value;
	uint64_t count = 0;
	int found = db_get(&blobs->db, txn, blobs->counts, chunk_key(id), &value, err);

	if (found < 0)
		return -1;
	if (found == 1 && value.len != sizeof(count))
		return err_set(err, ERR_CORRUPT, "%s: a count of %zu bytes", blobs->db.path,
			       value.len);
	if (found == 1)
		memcpy(&count, value.ptr, sizeof(count));
	*out = le64toh(count);
	return 0;
}

int chunk_count_up(const struct store_blobs *blobs, MDB_txn *txn, const struct digest *id,
		   struct err *err)
{
	uint64_t count = 0;
	uint64_t disk;

	if (chunk_count(blobs, txn, id, &count, err) < 0)
		return -1;
	disk = htole64(count + 1);
	return db_put(&blobs->db, txn, blobs->counts, chunk_key(id),
		      (struct str){(const char *)&disk, sizeof(disk)}, err);
}

/* A count of 0 has no record. Where there was none the store is damaged, which fsck reports. */
int chunk_count_down(const struct store_blobs *blobs, MDB_txn *txn, const struct digest *id,
		     struct err *err)
{
	uint64_t count = 0;
	uint64_t disk;

	if (chunk_count(blobs, txn, id, &count, err) < 0)
		return -1;
	disk = htole64(count - 1);
	if (count <= 1)
		return db_del(&blobs->db, txn, blobs->counts, chunk_key(id), err) < 0 ? -1 : 0;
	return db_put(&blobs->db, txn, blobs->counts, chunk_key(id),
		      (struct str){(const char *)&disk, sizeof(disk)}, err);
}

static struct str chunk_frame_key(const char *codec, const struct fingerprint *plain,
				  char space[static CHUNK_FRAME_KEY_MAX])
{
	size_t len = strlen(codec) + 1;

	assert(len - 1 <= CHUNK_CODEC_MAX);
	memcpy(space, codec, len);
	memcpy(space + len, plain->bytes, sizeof(plain->bytes));
	return (struct str){space, len + sizeof(plain->bytes)};
}

int chunk_find_frame(const struct store_blobs *blobs, MDB_txn *txn, const char *codec,
		     const struct fingerprint *plain, struct chunk_frame *out, struct err *err)
{
	char space[CHUNK_FRAME_KEY_MAX];
	struct str key = chunk_frame_key(codec, plain, space);
	struct chunk_frame_value disk;
	struct str value;
	int found = db_get(&blobs->db, txn, blobs->frames, key, &value, err);

	if (found <= 0)
		return found;
	if (value.len != sizeof(disk))
		return err_set(err, ERR_CORRUPT, "%s: a frame record of %zu bytes", blobs->db.path,
			       value.len);
	memcpy(&disk, value.ptr, sizeof(disk));
	*out = (struct chunk_frame){.id = {.algorithm = DIGEST_SHA256},
				    .plain_size = le32toh(disk.plain_size)};
	memcpy(out->id.bytes, disk.id, CHUNK_ID_BYTES);
	return 1;
}

int chunk_put_frame(const struct store_blobs *blobs, MDB_txn *txn, const char *codec,
		    const struct fingerprint *plain, const struct chunk_frame *frame,
		    struct err *err)
{
	char space[CHUNK_FRAME_KEY_MAX];
	struct str key = chunk_frame_key(codec, plain, space);
	struct chunk_frame_value disk = {.plain_size = htole32(frame->plain_size)};

	memcpy(disk.id, frame->id.bytes, CHUNK_ID_BYTES);
	return db_put(&blobs->db, txn, blobs->frames, key,
		      (struct str){(const char *)&disk, sizeof(disk)}, err);
}
