/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chunk_priv.h - chunks, how many blobs use each, and frames by what they
 * inflate to. All inside the caller's transaction on blobs/.
 *
 * Invariant: a chunk's bytes have its digest; it is written once and never
 * changed. A frame record may outlive its chunk, and is then a miss.
 */
#pragma once

#include "layers/digest.h"
#include "layers/fingerprint.h"
#include "layers/store_priv.h"

#define CHUNK_CODEC_MAX ((size_t)63)
#define CHUNK_FRAME_KEY_MAX (CHUNK_CODEC_MAX + 1 + sizeof(struct fingerprint))

/* 1 hit, 0 miss, -1. The bytes lie in the map and live as long as txn. */
int chunk_find(const struct store_blobs *blobs, MDB_txn *txn, const struct digest *id,
	       struct str *out, struct err *err) MUST_CHECK;

/* Store a chunk; one that is there already is left alone. */
int chunk_put(const struct store_blobs *blobs, MDB_txn *txn, const struct digest *id,
	      struct str bytes, struct err *err) MUST_CHECK;

/* How many places in blobs hold the chunk; 0 where there is no record. */
int chunk_count(const struct store_blobs *blobs, MDB_txn *txn, const struct digest *id,
		uint64_t *out, struct err *err) MUST_CHECK;
int chunk_count_up(const struct store_blobs *blobs, MDB_txn *txn, const struct digest *id,
		   struct err *err) MUST_CHECK;

int chunk_count_down(const struct store_blobs *blobs, MDB_txn *txn, const struct digest *id,
		     struct err *err) MUST_CHECK;

struct chunk_frame {
	struct digest id;
	uint32_t plain_size; /* bytes */
};

/* The frame that a codec makes of these plain bytes. 1, 0 or -1. */
int chunk_find_frame(const struct store_blobs *blobs, MDB_txn *txn, const char *codec,
		     const struct fingerprint *plain, struct chunk_frame *out, struct err *err)
	MUST_CHECK;
int chunk_put_frame(const struct store_blobs *blobs, MDB_txn *txn, const char *codec,
		    const struct fingerprint *plain, const struct chunk_frame *frame,
		    struct err *err) MUST_CHECK;
