/* SPDX-License-Identifier: Apache-2.0 */
/* blob_writer.c - chunks as they come, and at the end the entry that names them. */
#include "layers/base/array.h"
#include "layers/blob_priv.h"

#include <assert.h>

struct blob_writer {
	struct store *store;
	const struct store_blobs *blobs;
	int session;
	uint64_t since; /* of batch.c */
	struct hasher hasher;
	struct hasher other; /* by another algorithm, where that was asked for */
	struct buf partial;  /* foreign bytes of less than a chunk */
	uint64_t size;
	uint64_t new_bytes;
	struct blob_ref *refs;
	size_t count;
	struct str receipt; /* borrowed */
};

int blob_writer_open(struct store *store, struct blob_writer **out, struct err *err)
{
	AUTO(blob_writer) struct blob_writer *writer = calloc(1, sizeof(*writer));

	if (!writer)
		abort();
	writer->store = store;
	writer->partial = BUF_INIT(BLOB_CHUNK_MAX);
	hasher_init(&writer->hasher);
	writer->session = store_session(store, err);
	if (writer->session < 0 || store_blobs(store, &writer->blobs, err) < 0)
		return -1;
	*out = steal_ptr(&writer);
	return 0;
}

void blob_writer_close(struct blob_writer *writer)
{
	if (!writer)
		return;
	if (writer->session >= 0)
		(void)close(writer->session);
	hasher_done(&writer->hasher);
	hasher_done(&writer->other);
	buf_done(&writer->partial);
	free(writer->refs);
	free(writer);
}

void blob_writer_hash_as(struct blob_writer *writer, enum digest_algorithm algorithm)
{
	assert(writer->size == 0 && writer->partial.len == 0 && !writer->other.md);
	if (algorithm != DIGEST_SHA256)
		hasher_init_as(&writer->other, algorithm);
}

static void blob_writer_hash(struct blob_writer *writer, struct str bytes)
{
	hasher_add(&writer->hasher, bytes);
	if (writer->other.md)
		hasher_add(&writer->other, bytes);
}

void blob_writer_receipt(struct blob_writer *writer, struct str name)
{
	writer->receipt = name;
}

uint64_t blob_writer_new_bytes(const struct blob_writer *writer)
{
	return writer->new_bytes;
}

static int blob_writer_append(struct blob_writer *writer, const struct blob_chunk *chunk,
			      struct err *err)
{
	if (array_make_room(&writer->refs, sizeof(*writer->refs), writer->count, BLOB_CHUNKS_MAX,
			    "chunks in a blob", err) < 0)
		return -1;
	blob_ref_make(chunk, &writer->refs[writer->count++]);
	writer->size += chunk->size;
	return 0;
}

/* Whether the store has this chunk, and, for a frame, knows what it inflates to. */
static int blob_writer_has(const struct blob_writer *writer, const struct batch_chunk *chunk,
			   struct err *err)
{
	AUTO(txn) MDB_txn *txn = NULL;
	struct chunk_frame frame;
	struct str bytes;
	int found;

	if (db_begin(&writer->blobs->db, DB_READ, &txn, err) < 0)
		return -1;
	found = chunk_find(writer->blobs, txn, &chunk->id, &bytes, err);
	if (found <= 0 || !chunk->codec)
		return found;
	return chunk_find_frame(writer->blobs, txn, chunk->codec, &chunk->plain, &frame, err);
}

/* Put the chunk, whose id is found, on the list. 1 the store has it already, 0, -1. */
static int blob_writer_list(struct blob_writer *writer, struct batch_chunk *chunk, struct err *err)
{
	struct blob_chunk ref = {.size = (uint32_t)chunk->bytes.len,
				 .plain_size = chunk->plain_size};

	/* All bytes up to its end are hashed: the first one's digest is as if the blob ended here.
	 */
	if (writer->count == 0)
		hasher_peek(&writer->hasher, &chunk->id);
	else
		digest_of(chunk->bytes, &chunk->id);
	ref.id = chunk->id;
	if (blob_writer_append(writer, &ref, err) < 0)
		return -1;
	return blob_writer_has(writer, chunk, err);
}

static int blob_writer_add_chunk(struct blob_writer *writer, struct batch_chunk *chunk,
				 struct err *err)
{
	int known = blob_writer_list(writer, chunk, err);
	int added;

	if (known != 0)
		return known < 0 ? -1 : 0;
	added = batch_add(writer->store, chunk, &writer->since, err);
	if (added < 0)
		return -1;
	writer->new_bytes += added ? chunk->bytes.len : 0;
	return 0;
}

static int blob_writer_flush(struct blob_writer *writer, struct err *err)
{
	struct batch_chunk chunk = {.bytes = buf_str(&writer->partial)};

	if (chunk.bytes.len == 0)
		return 0;
	if (blob_writer_add_chunk(writer, &chunk, err) < 0)
		return -1;
	buf_clear(&writer->partial);
	return 0;
}

int blob_writer_add(struct blob_writer *writer, struct str bytes, struct err *err)
{
	while (bytes.len > 0) {
		size_t room = BLOB_CHUNK_MAX - writer->partial.len;
		struct str piece = {bytes.ptr, bytes.len < room ? bytes.len : room};
		struct batch_chunk whole = {.bytes = piece};

		blob_writer_hash(writer, piece); /* as it comes, which is while a peer sends more */
		if (piece.len == BLOB_CHUNK_MAX) {
			if (blob_writer_add_chunk(writer, &whole, err) < 0)
				return -1;
		} else {
			if (buf_add(&writer->partial, piece, err) < 0)
				return -1;
			if (writer->partial.len == BLOB_CHUNK_MAX &&
			    blob_writer_flush(writer, err) < 0)
				return -1;
		}
		bytes.ptr += piece.len;
		bytes.len -= piece.len;
	}
	return 0;
}

int blob_writer_add_known(struct blob_writer *writer, const char *codec,
			  const struct fingerprint *plain, struct err *err)
{
	AUTO(txn) MDB_txn *txn = NULL;
	struct chunk_frame frame;
	struct blob_chunk ref;
	struct str bytes = {0};
	int found;

	if (blob_writer_flush(writer, err) < 0 ||
	    db_begin(&writer->blobs->db, DB_READ, &txn, err) < 0)
		return -1;
	found = chunk_find_frame(writer->blobs, txn, codec, plain, &frame, err);
	if (found == 1)
		found = chunk_find(writer->blobs, txn, &frame.id, &bytes, err);
	if (found <= 0)
		return found;
	ref = (struct blob_chunk){frame.id, (uint32_t)bytes.len, frame.plain_size};
	blob_writer_hash(writer, bytes);
	return blob_writer_append(writer, &ref, err) < 0 ? -1 : 1;
}

int blob_writer_add_frame(struct blob_writer *writer, const char *codec,
			  const struct fingerprint *plain, uint32_t plain_size, struct str frame,
			  struct err *err)
{
	struct batch_chunk chunk = {
		.bytes = frame, .codec = codec, .plain = *plain, .plain_size = plain_size};

	assert(strlen(codec) <= CHUNK_CODEC_MAX && plain_size > 0);
	if (frame.len == 0 || frame.len > BLOB_CHUNK_MAX)
		return err_set(err, ERR_LIMIT, "a frame of %zu bytes; 1 to %zu are possible",
			       frame.len, BLOB_CHUNK_MAX);
	if (blob_writer_flush(writer, err) < 0)
		return -1;
	blob_writer_hash(writer, frame);
	return blob_writer_add_chunk(writer, &chunk, err);
}

static int blob_writer_mismatch(const struct digest *expected, const struct digest *found,
				struct err *err)
{
	char want[DIGEST_TEXT_MAX];
	char have[DIGEST_TEXT_MAX];

	return err_set(err, ERR_CORRUPT, "expected %s, received %s", digest_format(expected, want),
		       digest_format(found, have));
}

/* The hasher of an algorithm, or NULL: nobody has asked for that one. */
static struct hasher *blob_writer_hasher(struct blob_writer *writer,
					 enum digest_algorithm algorithm)
{
	if (algorithm == DIGEST_SHA256)
		return &writer->hasher;
	return writer->other.md && writer->other.algorithm == algorithm ? &writer->other : NULL;
}

int blob_writer_check(struct blob_writer *writer, const struct digest *expected, struct err *err)
{
	const struct hasher *hasher = blob_writer_hasher(writer, expected->algorithm);
	struct digest found;

	if (!hasher)
		return 0; /* blob_writer_commit() judges those */
	hasher_peek(hasher, &found);
	if (!digest_equal(&found, expected))
		return blob_writer_mismatch(expected, &found, err);
	return 0;
}

static int blob_writer_hash_again(struct store *store, const struct digest *digest,
				  enum digest_algorithm algorithm, struct digest *out,
				  struct err *err)
{
	AUTO(blob_reader) struct blob_reader *reader = NULL;
	AUTO(hasher) struct hasher hasher = {0};
	struct str bytes;
	int more;

	if (blob_reader_open(store, digest, &reader, err) < 0)
		return -1;
	hasher_init_as(&hasher, algorithm);
	while ((more = blob_reader_next(reader, &bytes, NULL, err)) == 1)
		hasher_add(&hasher, bytes);
	if (more < 0)
		return -1;
	hasher_final(&hasher, out);
	return 0;
}

/*
 * A digest of another kind than we compute on the way: the stored bytes are
 * read once more, and only then does the blob exist under that name.
 */
static int blob_writer_alias(struct blob_writer *writer, struct batch_blob *blob,
			     const struct digest *expected, struct err *err)
{
	struct digest found;

	if (blob_writer_hash_again(writer->store, &blob->digest, expected->algorithm, &found, err) <
	    0)
		return -1;
	if (!digest_equal(&found, expected))
		return blob_writer_mismatch(expected, &found, err);
	blob->last = (struct batch_chunk){0};
	blob->alias = expected;
	blob->receipt = writer->receipt;
	return batch_commit(writer->store, blob, writer->since, err);
}

/* What came since the last whole chunk is written with the entry, from where it is. */
static int blob_writer_end(struct blob_writer *writer, struct batch_blob *blob, struct err *err)
{
	struct batch_chunk chunk = {.bytes = buf_str(&writer->partial)};
	int known = chunk.bytes.len > 0 ? blob_writer_list(writer, &chunk, err) : 1;

	if (known < 0)
		return -1;
	if (known == 0) {
		blob->last = chunk;
		writer->new_bytes += chunk.bytes.len;
	}
	hasher_final(&writer->hasher, &blob->digest);
	blob->size = writer->size;
	blob->refs = writer->refs;
	blob->count = writer->count;
	return 0;
}

int blob_writer_commit(struct blob_writer *writer, const struct digest *expected,
		       struct blob_info *out, struct err *err)
{
	struct batch_blob blob = {0};
	bool foreign = expected && expected->algorithm != DIGEST_SHA256;
	bool hashed = foreign && blob_writer_hasher(writer, expected->algorithm);

	if ((expected && blob_writer_check(writer, expected, err) < 0) ||
	    blob_writer_end(writer, &blob, err) < 0)
		return -1;
	blob.alias = hashed ? expected : NULL;
	if (!foreign || hashed)
		blob.receipt = writer->receipt;
	if (batch_commit(writer->store, &blob, writer->since, err) < 0)
		return -1;
	if (foreign && !hashed && blob_writer_alias(writer, &blob, expected, err) < 0)
		return -1;
	*out = (struct blob_info){blob.digest, blob.size, blob.chunks};
	return 0;
}
