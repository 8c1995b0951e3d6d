/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blob.h - immutable bytes named by their digest, kept as lists of chunks.
 *
 * A chunk is at most 1 MiB, named by its sha256, and shared between blobs. A
 * blob's bytes are its chunks' bytes in order. Foreign blobs are kept byte for
 * byte, cut every 1 MiB; layers that we make are cut by content, and each of
 * their chunks is one whole zstd frame or gzip member (layer.h).
 *
 * A blob's life:                       made by                  visible
 * 	1 chunks, a few MiB at a time   blob_writer_add*()       no
 * 	2 the entry and all counts      blob_writer_commit()     yes, for ever
 *
 * Durability: chunks are committed before the entry that names them; when
 * blob_writer_commit() returns 0 the blob survives a power cut. A crash before
 * leaves chunks without a count, which collection takes.
 *
 * Threads: a writer or reader belongs to one thread at a time; any number may
 * work at once, and their writes are committed together. Collection: an open
 * writer is a write session; while there is one, in any process, chunks without
 * a count are not collected. Memory: uncommitted chunks of all writers of a
 * process take at most three times BATCH_BYTES (batch_priv.h), 12 MiB; a writer
 * adds a chunk, and 40 bytes for each chunk of its blob.
 */
#pragma once

#include "layers/base/cancel.h"
#include "layers/base/sink.h"
#include "layers/digest.h"
#include "layers/fingerprint.h"
#include "layers/store.h"

#define BLOB_CHUNK_MAX ((size_t)1024 * 1024)

struct blob_info {
	struct digest digest;
	uint64_t size; /* bytes */
	uint64_t chunks;
};

/* 1 hit, 0 miss, -1. */
int blob_find(struct store *store, const struct digest *digest, struct blob_info *out,
	      struct err *err) MUST_CHECK;

/* The sha256 of a blob that may be asked for by its sha512: what records call it. 1, 0, -1. */
int blob_find_id(struct store *store, const struct digest *digest, struct digest *out,
		 struct err *err) MUST_CHECK;

/* The whole of a small blob. ERR_NOT_FOUND, or ERR_LIMIT above out's ceiling. */
int blob_read_all(struct store *store, const struct digest *digest, struct buf *out,
		  struct err *err) MUST_CHECK;

/*
 * Store bytes in memory as a blob; storing them twice is the same blob, and as
 * good as new to a collector (lease.h).
 */
int blob_put(struct store *store, struct str bytes, struct digest *out, struct err *err) MUST_CHECK;

/* The same of bytes that go by this name, and are found by it: else ERR_CORRUPT. *out is a sha256.
 */
int blob_put_as(struct store *store, struct str bytes, const struct digest *name,
		struct digest *out, struct err *err) MUST_CHECK;

/* One chunk of a blob, as it lies in the store. */
struct blob_chunk {
	struct digest id;    /* sha256 of its bytes */
	uint32_t size;       /* bytes in the blob */
	uint32_t plain_size; /* of the frame, inflated; 0 for foreign chunks */
};

/*
 * Reads a blob in order. Bytes lent are valid until the next call; a short
 * read transaction is opened inside each call, so a reader may wait for a peer
 * between calls. ERR_CORRUPT for a chunk that is missing or of another size.
 */
struct blob_reader;
int blob_reader_open(struct store *store, const struct digest *digest, struct blob_reader **out,
		     struct err *err) MUST_CHECK;
void blob_reader_close(struct blob_reader *reader);
const struct blob_info *blob_reader_info(const struct blob_reader *reader);

/* 1 and the chunk with its bytes, 0 at the end, -1. out_chunk may be NULL. */
int blob_reader_next(struct blob_reader *reader, struct str *out, struct blob_chunk *out_chunk,
		     struct err *err) MUST_CHECK;

/* Copy the bytes of a blob to a sink, checking its digest on the way. */
int blob_copy(struct store *store, const struct digest *digest, struct sink *out, struct err *err)
	MUST_CHECK;

/* Only check its digest, where its bytes lie, until stop is raised. */
int blob_check_digest(struct store *store, const struct digest *digest, const struct cancel *stop,
		      struct err *err) MUST_CHECK;

struct blob_writer;
int blob_writer_open(struct store *store, struct blob_writer **out, struct err *err) MUST_CHECK;

/* Without a commit, what was added is garbage. */
void blob_writer_close(struct blob_writer *writer);

/*
 * Before the first byte: hash what comes by this algorithm, too, so that a
 * digest of it is checked without another reading.
 */
void blob_writer_hash_as(struct blob_writer *writer, enum digest_algorithm algorithm);

/* Foreign bytes; cut every 1 MiB. May block in a commit of earlier chunks. */
int blob_writer_add(struct blob_writer *writer, struct str bytes, struct err *err) MUST_CHECK;

/*
 * The frame that holds these plain bytes was made before under this codec's
 * name (1, and it is appended without its bytes being touched), or was not (0).
 */
int blob_writer_add_known(struct blob_writer *writer, const char *codec,
			  const struct fingerprint *plain, struct err *err) MUST_CHECK;

/* One frame, whole, with what it inflates to; remembered for the next time. */
int blob_writer_add_frame(struct blob_writer *writer, const char *codec,
			  const struct fingerprint *plain, uint32_t plain_size, struct str frame,
			  struct err *err) MUST_CHECK;

/* The commit leaves a receipt of this name (receipt.h), which is borrowed until then. */
void blob_writer_receipt(struct blob_writer *writer, struct str name);

/* How many of the added bytes the store did not have yet. */
uint64_t blob_writer_new_bytes(const struct blob_writer *writer);

/*
 * Check that the bytes so far are those of this digest, a sha256 or one that was
 * asked for above; ERR_CORRUPT if not.
 */
int blob_writer_check(struct blob_writer *writer, const struct digest *expected, struct err *err)
	MUST_CHECK;

/*
 * Make the blob exist. Every chunk is looked up again in the transaction that
 * counts it: ERR_UNAVAILABLE when one was collected meanwhile, and the caller
 * starts anew. expected is NULL, or the digest that the bytes must have: else
 * ERR_CORRUPT. The blob is found by either digest, where that is no sha256; one
 * that was not asked for before costs another reading.
 */
int blob_writer_commit(struct blob_writer *writer, const struct digest *expected,
		       struct blob_info *out, struct err *err) MUST_CHECK;

DEFINE_AUTO(blob_reader, struct blob_reader *, blob_reader_close);
DEFINE_AUTO(blob_writer, struct blob_writer *, blob_writer_close);
