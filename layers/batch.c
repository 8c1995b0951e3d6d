/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.c - group commit into blobs/.
 *
 * A batch's life:        made by                 its chunks are
 *	1 filling    the first batch_add()   in memory, seen by batch_add() alone
 *	2 written    the store's thread, or  in LMDB's transaction
 *	             who waits for a blob
 *	3 over       the same                durable; or lost, and `failed` says so
 *
 * Batches are written one after the other, so when a blob is written all
 * chunks that were added before it are over.
 */
#include "layers/batch_priv.h"

#include "layers/base/thread.h"
#include "layers/blob_priv.h"
#include "layers/receipt_priv.h"

struct batch_item {
	struct digest id;
	size_t at; /* in batch.bytes */
	size_t len;
	char codec[CHUNK_CODEC_MAX + 1]; /* "" for a foreign chunk */
	struct fingerprint plain;
	uint32_t plain_size;
};

struct batch {
	size_t used; /* of bytes */
	size_t lent; /* by the blobs */
	size_t count;
	struct batch_blob *blobs; /* owned by the threads that wait for them */
	struct batch_item items[BATCH_CHUNKS_MAX];
	char bytes[BATCH_BYTES];
};

void batch_queue_init(struct batch_queue *queue)
{
	*queue = (struct batch_queue){.lock = LOCK_INIT, .number = 1};
	(void)pthread_cond_init(&queue->changed, NULL);
}

void batch_queue_done(struct batch_queue *queue)
{
	lock_take(&queue->lock);
	queue->ended = true;
	pthread_cond_broadcast(&queue->changed);
	lock_drop(&queue->lock);
	if (queue->threaded)
		(void)pthread_join(queue->thread, NULL);
	free(queue->filling); /* chunks of writers that never committed */
	free(queue->spare);
	(void)pthread_cond_destroy(&queue->changed);
}

static int batch_write_chunk(const struct store_blobs *blobs, MDB_txn *txn,
			     const struct batch_chunk *chunk, struct err *err)
{
	struct chunk_frame frame = {chunk->id, chunk->plain_size};

	if (chunk_put(blobs, txn, &chunk->id, chunk->bytes, err) < 0)
		return -1;
	return chunk->codec ? chunk_put_frame(blobs, txn, chunk->codec, &chunk->plain, &frame, err)
			    : 0;
}

static int batch_write_chunks(const struct store_blobs *blobs, MDB_txn *txn,
			      const struct batch *batch, struct err *err)
{
	for (size_t i = 0; i < batch->count; i++) {
		const struct batch_item *item = &batch->items[i];
		const struct batch_chunk chunk = {
			.id = item->id,
			.bytes = {batch->bytes + item->at, item->len},
			.codec = item->codec[0] ? item->codec : NULL,
			.plain = item->plain,
			.plain_size = item->plain_size,
		};

		if (batch_write_chunk(blobs, txn, &chunk, err) < 0)
			return -1;
	}
	return 0;
}

/* Where the blob cannot be, blob->err says so. */
static int batch_write_blob(const struct store_blobs *blobs, MDB_txn *txn, struct batch_blob *blob,
			    struct err *err)
{
	if ((blob->last.bytes.len > 0 && batch_write_chunk(blobs, txn, &blob->last, err) < 0) ||
	    blob_entry_put(blobs, txn, blob, err) < 0)
		return -1;
	return blob->err.kind == ERR_NONE && blob->receipt.len > 0
		       ? receipt_put(blobs, txn, blob, err)
		       : 0;
}

static int batch_write(struct store *store, struct batch *batch, struct err *err)
{
	const struct store_blobs *blobs;
	AUTO(txn) MDB_txn *txn = NULL;

	if (store_blobs(store, &blobs, err) < 0 || db_begin(&blobs->db, DB_WRITE, &txn, err) < 0 ||
	    batch_write_chunks(blobs, txn, batch, err) < 0)
		return -1;
	for (struct batch_blob *blob = batch->blobs; blob; blob = blob->next) {
		if (batch_write_blob(blobs, txn, blob, err) < 0)
			return -1;
	}
	return db_commit(&blobs->db, steal_ptr(&txn), err);
}

/* Close the batch that fills. Nobody writes another before this one is over. */
static struct batch *batch_take_locked(struct store *store) REQUIRES(store->queue.lock);
static struct batch *batch_take_locked(struct store *store)
{
	store->queue.busy = true;
	store->queue.number++;
	return steal_ptr(&store->queue.filling);
}

/* Write a batch that was taken: always the one before the one that fills. */
static void batch_finish_locked(struct store *store, struct batch *batch)
	REQUIRES(store->queue.lock);
static void batch_finish_locked(struct store *store, struct batch *batch)
{
	struct batch_queue *queue = &store->queue;
	uint64_t number = queue->number - 1;
	struct err err = {0};
	int rc;

	lock_drop(&store->queue.lock);
	rc = batch_write(store, batch, &err);
	for (struct batch_blob *blob = batch->blobs; rc < 0 && blob; blob = blob->next)
		blob->err = err;
	lock_take(&store->queue.lock);
	queue->busy = false;
	queue->written = number;
	if (rc < 0) {
		queue->failed = number;
		queue->why = err;
	}
	free(queue->spare);
	queue->spare = batch;
	pthread_cond_broadcast(&queue->changed);
}

static void *batch_main(void *ctx)
{
	struct store *store = ctx;
	struct batch_queue *queue = &store->queue;

	lock_take(&store->queue.lock);
	while (queue->full || !queue->ended) {
		if (queue->full)
			batch_finish_locked(store, steal_ptr(&queue->full));
		else
			pthread_cond_wait(&queue->changed, &queue->lock.os);
	}
	lock_drop(&store->queue.lock);
	return NULL;
}

/* Give a full batch to the thread; if there is none, whoever found it full writes it. */
static void batch_give_locked(struct store *store) REQUIRES(store->queue.lock);
static void batch_give_locked(struct store *store)
{
	struct batch_queue *queue = &store->queue;
	struct batch *batch = batch_take_locked(store);
	struct err ignored;

	if (!queue->threaded)
		queue->threaded = thread_start(&queue->thread, batch_main, store, &ignored) == 0;
	if (!queue->threaded) {
		batch_finish_locked(store, batch);
		return;
	}
	queue->full = batch;
	pthread_cond_broadcast(&queue->changed);
}

static bool batch_holds(const struct batch *batch, const struct digest *id)
{
	for (size_t i = 0; i < batch->count; i++) {
		if (digest_equal(&batch->items[i].id, id))
			return true;
	}
	return false;
}

static void batch_fill(struct batch *batch, const struct batch_chunk *chunk)
{
	struct batch_item *item = &batch->items[batch->count++];

	*item = (struct batch_item){.id = chunk->id,
				    .at = batch->used,
				    .len = chunk->bytes.len,
				    .plain = chunk->plain,
				    .plain_size = chunk->plain_size};
	if (chunk->codec)
		memcpy(item->codec, chunk->codec, strlen(chunk->codec) + 1);
	memcpy(batch->bytes + batch->used, chunk->bytes.ptr, chunk->bytes.len);
	batch->used += chunk->bytes.len;
}

/* An empty batch, in the memory of one that is over if there is such. */
static struct batch *batch_new_locked(struct store *store) REQUIRES(store->queue.lock);
static struct batch *batch_new_locked(struct store *store)
{
	struct batch *batch = steal_ptr(&store->queue.spare);

	if (!batch)
		batch = malloc(sizeof(*batch)); /* touched only as it fills */
	if (!batch)
		abort();
	batch->used = batch->lent = batch->count = 0;
	batch->blobs = NULL;
	return batch;
}

/* A batch that fills and has room for len bytes more. */
static struct batch *batch_room_locked(struct store *store, size_t len) REQUIRES(store->queue.lock);
static struct batch *batch_room_locked(struct store *store, size_t len)
{
	struct batch_queue *queue = &store->queue;

	for (;;) {
		struct batch *batch = queue->filling;

		if (!batch)
			batch = queue->filling = batch_new_locked(store);
		if (batch->count < BATCH_CHUNKS_MAX &&
		    len <= BATCH_BYTES - batch->used - batch->lent)
			return batch;
		if (queue->busy)
			pthread_cond_wait(&queue->changed, &queue->lock.os);
		else
			batch_give_locked(store);
	}
}

static int batch_check_locked(const struct store *store, uint64_t since, struct err *err)
	REQUIRES(store->queue.lock);
static int batch_check_locked(const struct store *store, uint64_t since, struct err *err)
{
	if (since == 0 || store->queue.failed < since)
		return 0;
	*err = store->queue.why;
	return -1;
}

int batch_add(struct store *store, const struct batch_chunk *chunk, uint64_t *since,
	      struct err *err)
{
	struct batch_queue *queue = &store->queue;
	struct batch *batch;
	int added = 0;

	lock_take(&store->queue.lock);
	batch = batch_room_locked(store, chunk->bytes.len);
	if (*since == 0)
		*since = queue->number;
	if (batch_check_locked(store, *since, err) < 0) {
		added = -1;
	} else if (!batch_holds(batch, &chunk->id)) {
		batch_fill(batch, chunk);
		added = 1;
	}
	lock_drop(&store->queue.lock);
	return added;
}

int batch_commit(struct store *store, struct batch_blob *blob, uint64_t since, struct err *err)
{
	struct batch_queue *queue = &store->queue;
	struct batch *batch;
	uint64_t number;
	int rc;

	lock_take(&store->queue.lock);
	batch = batch_room_locked(store, blob->last.bytes.len);
	batch->lent += blob->last.bytes.len;
	number = queue->number;
	blob->err = (struct err){0};
	blob->next = batch->blobs;
	batch->blobs = blob;
	while (queue->written < number) {
		if (queue->busy)
			pthread_cond_wait(&queue->changed, &queue->lock.os);
		else
			batch_finish_locked(store, batch_take_locked(store));
	}
	rc = batch_check_locked(store, since, err);
	lock_drop(&store->queue.lock);
	if (rc == 0 && blob->err.kind != ERR_NONE) {
		*err = blob->err;
		rc = -1;
	}
	return rc;
}
