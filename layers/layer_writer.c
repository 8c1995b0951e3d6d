/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer_writer.c - a tar becomes chunks, chunks become frames, frames a blob.
 *
 *	caller     collects bytes, cuts                             -> jobs
 *	workers    hash a chunk, look it up, compress it if new     -> jobs, done
 *	collector  in order: hashes the whole (diff id), gives
 *	           frames to the blob writer
 *
 * Jobs lie in a ring of JOBS_MAX; job n is in slot n % JOBS_MAX. A layer of a
 * chunk or two, which most steps make, starts no thread: the caller does it
 * all.
 */
#include "layers/base/embed.h"
#include "layers/base/lock.h"
#include "layers/base/thread.h"
#include "layers/blob_priv.h"
#include "layers/codec_priv.h"
#include "layers/cut_priv.h"
#include "layers/layer.h"

#define JOBS_SPARE 14 /* for when the collector waits for a disk, or somebody for a core */
#define JOBS_MAX (2 * LAYER_WORKERS_MAX + JOBS_SPARE)
#define JOBS_INLINE 2                     /* chunks before threads are started */
#define WRITER_BUFFER (4 * LAYER_CUT_MAX) /* bytes not cut yet; what is over moves to the front */

static const struct codec *const codecs[LAYER_CODECS] = {
	[LAYER_ZSTD] = &codec_zstd,
	[LAYER_GZIP] = &codec_gzip,
};

enum job_state { JOB_FREE, JOB_FILLED, JOB_TAKEN, JOB_DONE };

struct job {
	enum job_state state;
	char *plain; /* owned; LAYER_CUT_MAX bytes, made when first used */
	size_t plain_len;
	char *frame; /* owned; codec bound of that */
	size_t frame_len;
	struct fingerprint print; /* of plain */
	bool known;               /* the store has the frame: it was not made */
};

struct layer_writer {
	struct sink sink;
	struct store *store;
	struct fingerprint_key key;
	const struct codec *codec;
	char codec_name[CODEC_NAME_MAX];
	struct codec_context *context; /* of whoever collects */
	struct blob_writer *blob;      /* this and the next are the collector's, too */
	struct hasher diff_id;
	struct cutter cutter;
	uint64_t tar_size;
	char *buffer; /* owned; WRITER_BUFFER bytes */
	size_t buffered;
	uint64_t next;  /* number of the next job to fill */
	size_t slots;   /* of jobs, in use */
	size_t workers; /* wanted */
	size_t started;
	pthread_t threads[LAYER_WORKERS_MAX];
	pthread_t collector;
	bool threaded;
	struct lock lock;
	pthread_cond_t filled; /* workers wait for it */
	pthread_cond_t done;   /* the collector */
	pthread_cond_t freed;  /* the caller */
	/* guarded by lock: */
	struct job jobs[JOBS_MAX]; /* states; the rest is whose state says */
	uint64_t taken;            /* jobs before this number have a worker */
	uint64_t collected;        /* jobs before this number are in the blob */
	bool ended;                /* no job will follow `next` */
	struct err why;            /* the first failure of any thread */
};

static void writer_wake_all_locked(struct layer_writer *writer) REQUIRES(writer->lock);
static void writer_wake_all_locked(struct layer_writer *writer)
{
	pthread_cond_broadcast(&writer->filled);
	pthread_cond_broadcast(&writer->done);
	pthread_cond_broadcast(&writer->freed);
}

static void writer_fail_locked(struct layer_writer *writer, const struct err *why)
	REQUIRES(writer->lock);
static void writer_fail_locked(struct layer_writer *writer, const struct err *why)
{
	if (writer->why.kind == ERR_NONE)
		writer->why = *why;
	writer_wake_all_locked(writer);
}

/* 1 the store has a frame of these plain bytes, 0, -1. */
static int job_is_known(const struct layer_writer *writer, const struct fingerprint *plain,
			struct err *err)
{
	const struct store_blobs *blobs;
	AUTO(txn) MDB_txn *txn = NULL;
	struct chunk_frame frame;
	struct str bytes;
	int found;

	if (store_blobs(writer->store, &blobs, err) < 0 ||
	    db_begin(&blobs->db, DB_READ, &txn, err) < 0)
		return -1;
	found = chunk_find_frame(blobs, txn, writer->codec_name, plain, &frame, err);
	return found == 1 ? chunk_find(blobs, txn, &frame.id, &bytes, err) : found;
}

static int job_compress(const struct layer_writer *writer, struct codec_context *context,
			struct job *job, struct err *err)
{
	size_t room = writer->codec->bound(LAYER_CUT_MAX);

	if (!job->frame)
		job->frame = malloc(room);
	if (!job->frame)
		abort();
	return writer->codec->compress(context, (struct str){job->plain, job->plain_len},
				       job->frame, room, &job->frame_len, err);
}

/* A worker's part of a job. */
static int job_work(const struct layer_writer *writer, struct codec_context *context,
		    struct job *job, struct err *err)
{
	int known;

	fingerprint_of(&writer->key, (struct str){job->plain, job->plain_len}, &job->print);
	known = job_is_known(writer, &job->print, err);
	job->known = known == 1;
	return known == 0 ? job_compress(writer, context, job, err) : known < 0 ? -1 : 0;
}

/* The collector's part. A frame that was collected in between is made after all. */
static int job_collect(struct layer_writer *writer, struct job *job, struct err *err)
{
	const char *name = writer->codec_name;
	int known = job->known ? blob_writer_add_known(writer->blob, name, &job->print, err) : 0;

	hasher_add(&writer->diff_id, (struct str){job->plain, job->plain_len});
	if (known != 0)
		return known < 0 ? -1 : 0;
	if (job->known && job_compress(writer, writer->context, job, err) < 0)
		return -1;
	return blob_writer_add_frame(writer->blob, name, &job->print, (uint32_t)job->plain_len,
				     (struct str){job->frame, job->frame_len}, err);
}

/* The next job for a worker, or NULL when there will be none. */
static struct job *writer_take_job(struct layer_writer *writer)
{
	struct job *job = NULL;

	lock_take(&writer->lock);
	for (;;) {
		struct job *next = &writer->jobs[writer->taken % writer->slots];

		if (writer->why.kind != ERR_NONE)
			break;
		if (next->state == JOB_FILLED) {
			next->state = JOB_TAKEN;
			writer->taken++;
			job = next;
			break;
		}
		if (writer->ended)
			break;
		pthread_cond_wait(&writer->filled, &writer->lock.os);
	}
	lock_drop(&writer->lock);
	return job;
}

static void writer_put_job(struct layer_writer *writer, struct job *job, int result,
			   const struct err *why)
{
	lock_take(&writer->lock);
	job->state = JOB_DONE;
	if (result < 0)
		writer_fail_locked(writer, why);
	pthread_cond_signal(&writer->done);
	lock_drop(&writer->lock);
}

static void *writer_worker(void *ctx)
{
	struct layer_writer *writer = ctx;
	struct codec_context *context = writer->codec->open();
	struct job *job;

	while ((job = writer_take_job(writer))) {
		struct err err = {0};
		int result = job_work(writer, context, job, &err);

		writer_put_job(writer, job, result, &err);
	}
	writer->codec->close(context);
	return NULL;
}

/* The next job in order, done; NULL when all are in the blob, or one failed. */
static struct job *writer_next_done(struct layer_writer *writer)
{
	struct job *job = NULL;

	lock_take(&writer->lock);
	for (;;) {
		struct job *next = &writer->jobs[writer->collected % writer->slots];

		if (writer->why.kind != ERR_NONE)
			break;
		if (next->state == JOB_DONE) {
			job = next;
			break;
		}
		if (writer->ended && writer->collected == writer->next)
			break;
		pthread_cond_wait(&writer->done, &writer->lock.os);
	}
	lock_drop(&writer->lock);
	return job;
}

static void *writer_collector(void *ctx)
{
	struct layer_writer *writer = ctx;
	struct job *job;

	while ((job = writer_next_done(writer))) {
		struct err err = {0};
		int result = job_collect(writer, job, &err);

		lock_take(&writer->lock);
		job->state = JOB_FREE;
		writer->collected++;
		if (result < 0)
			writer_fail_locked(writer, &err);
		pthread_cond_signal(&writer->freed);
		lock_drop(&writer->lock);
	}
	return NULL;
}

static int writer_start_threads(struct layer_writer *writer, struct err *err)
{
	if (thread_start(&writer->collector, writer_collector, writer, err) < 0)
		return -1;
	writer->threaded = true;
	while (writer->started < writer->workers) {
		if (thread_start(&writer->threads[writer->started], writer_worker, writer, err) < 0)
			return -1;
		writer->started++;
	}
	return 0;
}

static void writer_join(struct layer_writer *writer)
{
	if (!writer->threaded)
		return;
	lock_take(&writer->lock);
	writer->ended = true;
	writer_wake_all_locked(writer);
	lock_drop(&writer->lock);
	for (size_t i = 0; i < writer->started; i++)
		(void)pthread_join(writer->threads[i], NULL);
	(void)pthread_join(writer->collector, NULL);
	writer->threaded = false;
}

static void job_fill(struct job *job, struct str plain)
{
	if (!job->plain)
		job->plain = malloc(LAYER_CUT_MAX);
	if (!job->plain)
		abort();
	memcpy(job->plain, plain.ptr, plain.len);
	job->plain_len = plain.len;
}

static int writer_do_inline(struct layer_writer *writer, struct str plain, struct err *err)
{
	struct job *job = &writer->jobs[0];

	job_fill(job, plain);
	writer->next++;
	writer->taken++;
	writer->collected++;
	if (job_work(writer, writer->context, job, err) < 0)
		return -1;
	return job_collect(writer, job, err);
}

static int writer_emit(struct layer_writer *writer, struct str plain, struct err *err)
{
	struct job *job;
	int result = 0;

	if (!writer->threaded && writer->next < JOBS_INLINE)
		return writer_do_inline(writer, plain, err);
	if (!writer->threaded && writer_start_threads(writer, err) < 0)
		return -1;
	lock_take(&writer->lock);
	job = &writer->jobs[writer->next % writer->slots];
	while (job->state != JOB_FREE && writer->why.kind == ERR_NONE)
		pthread_cond_wait(&writer->freed, &writer->lock.os);
	if (writer->why.kind != ERR_NONE) {
		*err = writer->why;
		result = -1;
	}
	lock_drop(&writer->lock);
	if (result < 0)
		return -1;
	job_fill(job, plain); /* ours while it is free: nobody else fills */
	lock_take(&writer->lock);
	job->state = JOB_FILLED;
	writer->next++;
	pthread_cond_signal(&writer->filled);
	lock_drop(&writer->lock);
	return 0;
}

/* Cut what is buffered while a cut cannot move any more; all of it at an end. */
static int writer_cut_buffer(struct layer_writer *writer, bool all, struct err *err)
{
	size_t at = 0;

	while (writer->buffered - at >= LAYER_CUT_MAX || (all && at < writer->buffered)) {
		struct str rest = {writer->buffer + at, writer->buffered - at};
		size_t n = cutter_find(&writer->cutter, rest);

		if (writer_emit(writer, (struct str){rest.ptr, n}, err) < 0)
			return -1;
		at += n;
	}
	memmove(writer->buffer, writer->buffer + at, writer->buffered - at);
	writer->buffered -= at;
	return 0;
}

static int writer_write(struct sink *sink, struct str bytes, struct err *err)
{
	struct layer_writer *writer = container_of(sink, struct layer_writer, sink);

	writer->tar_size += bytes.len;
	while (bytes.len > 0) {
		size_t n = WRITER_BUFFER - writer->buffered;

		if (n > bytes.len)
			n = bytes.len;
		memcpy(writer->buffer + writer->buffered, bytes.ptr, n);
		writer->buffered += n;
		bytes.ptr += n;
		bytes.len -= n;
		if (writer->buffered == WRITER_BUFFER && writer_cut_buffer(writer, false, err) < 0)
			return -1;
	}
	return 0;
}

int layer_writer_open(struct store *store, enum layer_codec codec, struct layer_writer **out,
		      struct err *err)
{
	AUTO(layer_writer) struct layer_writer *writer = calloc(1, sizeof(*writer));

	if (!writer)
		abort();
	*writer = (struct layer_writer){
		.sink = {writer_write},
		.store = store,
		.codec = codecs[codec],
		.workers = thread_cores(LAYER_WORKERS_MAX),
		.lock = LOCK_INIT,
		.filled = PTHREAD_COND_INITIALIZER,
		.done = PTHREAD_COND_INITIALIZER,
		.freed = PTHREAD_COND_INITIALIZER,
	};
	writer->slots = 2 * writer->workers + JOBS_SPARE;
	writer->codec->name(writer->codec_name);
	writer->context = writer->codec->open();
	cutter_init(&writer->cutter);
	hasher_init(&writer->diff_id);
	writer->buffer = malloc(WRITER_BUFFER);
	if (!writer->buffer)
		abort();
	if (fingerprint_key(store, &writer->key, err) < 0 ||
	    blob_writer_open(store, &writer->blob, err) < 0)
		return -1;
	*out = steal_ptr(&writer);
	return 0;
}

void layer_writer_close(struct layer_writer *writer)
{
	struct err gone = {0};

	if (!writer)
		return;
	if (writer->threaded) {
		(void)err_set(&gone, ERR_CANCELLED, "the layer was given up");
		lock_take(&writer->lock);
		writer_fail_locked(writer, &gone);
		lock_drop(&writer->lock);
	}
	writer_join(writer);
	for (size_t i = 0; i < JOBS_MAX; i++) {
		free(writer->jobs[i].plain);
		free(writer->jobs[i].frame);
	}
	blob_writer_close(writer->blob);
	writer->codec->close(writer->context);
	hasher_done(&writer->diff_id);
	free(writer->buffer);
	pthread_cond_destroy(&writer->filled);
	pthread_cond_destroy(&writer->done);
	pthread_cond_destroy(&writer->freed);
	free(writer);
}

struct sink *layer_writer_sink(struct layer_writer *writer)
{
	return &writer->sink;
}

int layer_writer_cut(struct layer_writer *writer, struct err *err)
{
	return writer_cut_buffer(writer, true, err);
}

/* No bytes at all are one empty frame, since nothing is no stream of any format. */
static int writer_add_empty(struct layer_writer *writer, struct err *err)
{
	struct job *job = &writer->jobs[0];

	job_fill(job, STR(""));
	if (job_compress(writer, writer->context, job, err) < 0)
		return -1;
	return blob_writer_add(writer->blob, (struct str){job->frame, job->frame_len}, err);
}

int layer_writer_finish(struct layer_writer *writer, struct layer_info *out, struct err *err)
{
	struct layer_info info = {0};
	struct blob_info blob;

	if (writer_cut_buffer(writer, true, err) < 0)
		return -1;
	writer_join(writer);
	if (writer->why.kind != ERR_NONE) {
		*err = writer->why;
		return -1;
	}
	if ((writer->tar_size == 0 && writer_add_empty(writer, err) < 0) ||
	    blob_writer_commit(writer->blob, NULL, &blob, err) < 0)
		return -1;
	hasher_final(&writer->diff_id, &info.diff_id);
	info.blob = blob.digest;
	info.blob_size = blob.size;
	info.tar_size = writer->tar_size;
	info.new_bytes = blob_writer_new_bytes(writer->blob);
	*out = info;
	return 0;
}
