/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_priv.h - one writing transaction for what many threads have to write.
 *
 * LMDB has one writer at a time and a commit costs two syncs, so chunks and
 * finished blobs of all threads gather in a batch. A full one is written by a
 * thread of the store's own, which starts with the first, while the next one
 * fills. A caller who has to wait for a batch anyway writes it himself.
 *
 * Memory: one batch that fills and one that is written, BATCH_BYTES each, and
 * as much again in LMDB, whose dirty pages are heap until commit.
 */
#pragma once

#include "layers/base/lock.h"
#include "layers/digest.h"
#include "layers/fingerprint.h"

#define BATCH_BYTES ((size_t)4 * 1024 * 1024)
#define BATCH_CHUNKS_MAX ((size_t)2048)

struct store;
struct batch;

/* A chunk on its way; a frame is one with a codec. */
struct batch_chunk {
	struct digest id;
	struct str bytes;
	const char *codec;        /* NULL, or at most CHUNK_CODEC_MAX */
	struct fingerprint plain; /* of a frame */
	uint32_t plain_size;
};

/* A blob whose chunks have all been added, but for the last. */
struct batch_blob {
	struct digest digest;        /* sha256 */
	const struct digest *alias;  /* NULL, or another digest of the same bytes */
	uint64_t size;               /* bytes */
	const struct blob_ref *refs; /* blob_priv.h */
	size_t count;
	uint64_t chunks;         /* once written: of the list that the store has for these bytes */
	struct batch_chunk last; /* one of refs that is written with it; bytes of 0 for none */
	struct str receipt;      /* receipt.h: for whom; "" for nobody */
	struct batch_blob *next;
	struct err err; /* ERR_NONE once written */
};

struct batch_queue {
	struct lock lock;
	pthread_cond_t changed;
	pthread_t thread;
	/* guarded by lock: */
	struct batch *filling; /* NULL when nothing waits */
	struct batch *spare;   /* one that is over, for its memory */
	struct batch *full;    /* given to the thread, which has not taken it yet */
	bool busy;             /* somebody writes a batch, or is about to */
	uint64_t number;       /* of the batch that fills, from 1 */
	uint64_t written;      /* batches up to this one are over */
	uint64_t failed;       /* the last that failed, 0 for none */
	struct err why;        /* of that failure */
	bool threaded;
	bool ended;
};

void batch_queue_init(struct batch_queue *queue);
void batch_queue_done(struct batch_queue *queue);

/*
 * Copy a chunk into the batch; may write one first. *since is 0 before the
 * first call of a writer and kept by it: a batch that failed since then fails
 * the call. 1 where the batch did not have the bytes yet, 0 where it had.
 */
int batch_add(struct store *store, const struct batch_chunk *chunk, uint64_t *since,
	      struct err *err) MUST_CHECK;

/*
 * Make a blob exist, and all that was added before it; durable when this
 * returns 0. Its last chunk is not copied, and counts for the batch's memory. ERR_UNAVAILABLE when
 * one of its chunks is no longer there.
 */
int batch_commit(struct store *store, struct batch_blob *blob, uint64_t since, struct err *err)
	MUST_CHECK;
