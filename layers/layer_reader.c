/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer_reader.c - the tar of a stored layer, in order.
 *
 * Frames that we made are inflated by a thread a core, into a ring of slots
 * that the caller fills and empties in order. Foreign layers go through an
 * inflater in the caller's thread.
 */
#include "layers/base/lock.h"
#include "layers/base/thread.h"
#include "layers/codec_priv.h"
#include "layers/inflate_priv.h"
#include "layers/layer.h"

#define READER_SLOTS (2 * LAYER_WORKERS_MAX)
#define READER_INLINE 2 /* chunks of a layer that needs no threads */

enum reader_state { READER_FREE, READER_FILLED, READER_TAKEN, READER_DONE };

struct reader_slot {
	enum reader_state state;
	char *frame; /* owned; BLOB_CHUNK_MAX bytes, made when first used */
	size_t frame_len;
	char *plain; /* owned; LAYER_CUT_MAX bytes */
	size_t plain_len;
};

struct layer_reader {
	const struct codec *codec;     /* NULL for a foreign layer */
	struct codec_context *context; /* the caller's */
	struct blob_reader *blob;
	struct sink *out;
	uint64_t max;  /* plain bytes */
	uint64_t left; /* of those, what may still come */
	uint64_t filled;
	uint64_t emptied;
	size_t started;
	pthread_t threads[LAYER_WORKERS_MAX];
	struct lock lock;
	pthread_cond_t changed;
	/* guarded by lock: */
	struct reader_slot slots[READER_SLOTS]; /* states; the rest is whose state says */
	uint64_t taken;
	bool ended;
	struct err why;
};

static int reader_inflate(const struct layer_reader *reader, struct codec_context *context,
			  struct reader_slot *slot, struct err *err)
{
	return reader->codec->inflate(context, (struct str){slot->frame, slot->frame_len},
				      slot->plain, slot->plain_len, err);
}

static struct reader_slot *reader_take(struct layer_reader *reader)
{
	struct reader_slot *slot = NULL;

	lock_take(&reader->lock);
	for (;;) {
		struct reader_slot *next = &reader->slots[reader->taken % READER_SLOTS];

		if (next->state == READER_FILLED) {
			next->state = READER_TAKEN;
			reader->taken++;
			slot = next;
			break;
		}
		if (reader->ended)
			break;
		pthread_cond_wait(&reader->changed, &reader->lock.os);
	}
	lock_drop(&reader->lock);
	return slot;
}

static void *reader_worker(void *ctx)
{
	struct layer_reader *reader = ctx;
	struct codec_context *context = reader->codec->open();
	struct reader_slot *slot;

	while ((slot = reader_take(reader))) {
		struct err err = {0};
		int result = reader_inflate(reader, context, slot, &err);

		lock_take(&reader->lock);
		slot->state = READER_DONE;
		if (result < 0 && reader->why.kind == ERR_NONE)
			reader->why = err;
		pthread_cond_broadcast(&reader->changed);
		lock_drop(&reader->lock);
	}
	reader->codec->close(context);
	return NULL;
}

static int reader_start(struct layer_reader *reader, struct err *err)
{
	size_t wanted = thread_cores(LAYER_WORKERS_MAX);

	while (reader->started < wanted) {
		if (thread_start(&reader->threads[reader->started], reader_worker, reader, err) < 0)
			return -1;
		reader->started++;
	}
	return 0;
}

static void reader_done(struct layer_reader *reader)
{
	lock_take(&reader->lock);
	reader->ended = true;
	pthread_cond_broadcast(&reader->changed);
	lock_drop(&reader->lock);
	for (size_t i = 0; i < reader->started; i++)
		(void)pthread_join(reader->threads[i], NULL);
	for (size_t i = 0; i < READER_SLOTS; i++) {
		free(reader->slots[i].frame);
		free(reader->slots[i].plain);
	}
	if (reader->codec)
		reader->codec->close(reader->context);
	blob_reader_close(reader->blob);
	pthread_cond_destroy(&reader->changed);
}

static int reader_fill(struct layer_reader *reader, struct reader_slot *slot, struct str frame,
		       const struct blob_chunk *chunk, struct err *err)
{
	if (chunk->plain_size > LAYER_CUT_MAX)
		return err_set(err, ERR_CORRUPT, "a frame of %u plain bytes", chunk->plain_size);
	if (chunk->plain_size > reader->left)
		return inflater_too_much(reader->max, err);
	reader->left -= chunk->plain_size;
	if (!slot->frame)
		slot->frame = malloc(BLOB_CHUNK_MAX);
	if (!slot->plain)
		slot->plain = malloc(LAYER_CUT_MAX);
	if (!slot->frame || !slot->plain)
		abort();
	memcpy(slot->frame, frame.ptr, frame.len);
	slot->frame_len = frame.len;
	slot->plain_len = chunk->plain_size;
	return 0;
}

/* Wait for the oldest slot and pass it on. */
static int reader_empty_one(struct layer_reader *reader, struct err *err)
{
	struct reader_slot *slot = &reader->slots[reader->emptied % READER_SLOTS];
	bool failed;

	lock_take(&reader->lock);
	while (slot->state != READER_DONE)
		pthread_cond_wait(&reader->changed, &reader->lock.os);
	failed = reader->why.kind != ERR_NONE;
	if (failed)
		*err = reader->why;
	slot->state = READER_FREE;
	lock_drop(&reader->lock);
	if (failed)
		return -1;
	reader->emptied++;
	return reader->out->write(reader->out, (struct str){slot->plain, slot->plain_len}, err);
}

static void reader_hand_out(struct layer_reader *reader, struct reader_slot *slot)
{
	lock_take(&reader->lock);
	slot->state = READER_FILLED;
	reader->filled++;
	pthread_cond_broadcast(&reader->changed);
	lock_drop(&reader->lock);
}

static int reader_frame(struct layer_reader *reader, struct str frame,
			const struct blob_chunk *chunk, struct err *err)
{
	struct reader_slot *slot = &reader->slots[reader->filled % READER_SLOTS];

	if (blob_reader_info(reader->blob)->chunks <= READER_INLINE) {
		if (reader_fill(reader, slot, frame, chunk, err) < 0 ||
		    reader_inflate(reader, reader->context, slot, err) < 0)
			return -1;
		return reader->out->write(reader->out, (struct str){slot->plain, slot->plain_len},
					  err);
	}
	if (reader->started == 0 && reader_start(reader, err) < 0)
		return -1;
	if (reader->filled - reader->emptied == READER_SLOTS && reader_empty_one(reader, err) < 0)
		return -1;
	if (reader_fill(reader, slot, frame, chunk, err) < 0)
		return -1;
	reader_hand_out(reader, slot);
	return 0;
}

static int reader_frames(struct layer_reader *reader, struct str bytes, struct blob_chunk *chunk,
			 struct err *err)
{
	int more = 1;

	/* All frames of a layer are of one codec: another's is none to it. */
	reader->codec = inflate_gzip.starts(bytes) ? &codec_gzip : &codec_zstd;
	reader->context = reader->codec->open();
	while (more == 1) {
		if (chunk->plain_size == 0)
			return err_set(err, ERR_CORRUPT, "a layer of frames and other bytes");
		if (reader_frame(reader, bytes, chunk, err) < 0)
			return -1;
		more = blob_reader_next(reader->blob, &bytes, chunk, err);
	}
	if (more < 0)
		return -1;
	while (reader->emptied < reader->filled) {
		if (reader_empty_one(reader, err) < 0)
			return -1;
	}
	return 0;
}

static int reader_foreign(struct layer_reader *reader, struct str bytes, struct err *err)
{
	AUTO(inflater) struct inflater *inflater = NULL;
	int more = 1;

	if (inflater_open(reader->out, reader->left, &inflater, err) < 0)
		return -1;
	while (more == 1) {
		if (inflater_write(inflater, bytes, err) < 0)
			return -1;
		more = blob_reader_next(reader->blob, &bytes, NULL, err);
	}
	return more < 0 ? -1 : inflater_finish(inflater, err);
}

int layer_read(struct store *store, const struct digest *blob, uint64_t max_plain, struct sink *out,
	       struct err *err)
{
	struct layer_reader reader = {
		.out = out,
		.max = max_plain,
		.left = max_plain,
		.lock = LOCK_INIT,
		.changed = PTHREAD_COND_INITIALIZER,
	};
	struct blob_chunk chunk;
	struct str bytes;
	int result;

	if (blob_reader_open(store, blob, &reader.blob, err) < 0)
		return -1;
	result = blob_reader_next(reader.blob, &bytes, &chunk, err);
	if (result == 1)
		result = chunk.plain_size > 0 ? reader_frames(&reader, bytes, &chunk, err)
					      : reader_foreign(&reader, bytes, err);
	reader_done(&reader);
	return result;
}
