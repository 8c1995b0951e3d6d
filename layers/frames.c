/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames.c - three kinds of thread around a ring of jobs.
 *
 *	caller     fills a job with a chunk                         -> filled
 *	workers    hash it, look it up, compress it if it is new    -> done
 *	collector  in order: hashes the whole (diff id), gives
 *	           frames to the blob writer                        -> freed
 *
 * Job n is in slot n % slots. A layer of a chunk or two, which most steps make,
 * starts no thread: the caller does it all.
 */
#include "layers/frames_priv.h"

#include "layers/base/lock.h"
#include "layers/base/thread.h"
#include "layers/codec_priv.h"

#define JOBS_SPARE 14 /* for when the collector waits for a disk, or somebody for a core */
#define JOBS_MAX (2 * LAYER_WORKERS_MAX + JOBS_SPARE)
#define JOBS_INLINE 2 /* chunks before threads are started */

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

struct frames {
	struct store *store;
	struct fingerprint_key key;
	const struct codec *codec;
	char codec_name[CODEC_NAME_MAX];
	struct codec_context *context; /* of whoever collects */
	struct blob_writer *blob;      /* this and the next are the collector's, too */
	struct hasher diff_id;
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

static void frames_wake_all_locked(struct frames *frames) REQUIRES(frames->lock);
static void frames_wake_all_locked(struct frames *frames)
{
	pthread_cond_broadcast(&frames->filled);
	pthread_cond_broadcast(&frames->done);
	pthread_cond_broadcast(&frames->freed);
}

static void frames_fail_locked(struct frames *frames, const struct err *why) REQUIRES(frames->lock);
static void frames_fail_locked(struct frames *frames, const struct err *why)
{
	if (frames->why.kind == ERR_NONE)
		frames->why = *why;
	frames_wake_all_locked(frames);
}

/* 1 the store has a frame of these plain bytes, 0, -1. */
static int job_is_known(const struct frames *frames, const struct fingerprint *plain,
			struct err *err)
{
	const struct store_blobs *blobs;
	AUTO(txn) MDB_txn *txn = NULL;
	struct chunk_frame frame;
	struct str bytes;
	int found;

	if (store_blobs(frames->store, &blobs, err) < 0 ||
	    db_begin(&blobs->db, DB_READ, &txn, err) < 0)
		return -1;
	found = chunk_find_frame(blobs, txn, frames->codec_name, plain, &frame, err);
	return found == 1 ? chunk_find(blobs, txn, &frame.id, &bytes, err) : found;
}

static int job_compress(const struct frames *frames, struct codec_context *context, struct job *job,
			struct err *err)
{
	size_t room = frames->codec->bound(LAYER_CUT_MAX);

	if (!job->frame)
		job->frame = malloc(room);
	if (!job->frame)
		abort();
	return frames->codec->compress(context, (struct str){job->plain, job->plain_len},
				       job->frame, room, &job->frame_len, err);
}

/* A worker's part of a job. */
static int job_work(const struct frames *frames, struct codec_context *context, struct job *job,
		    struct err *err)
{
	int known;

	fingerprint_of(&frames->key, (struct str){job->plain, job->plain_len}, &job->print);
	known = job_is_known(frames, &job->print, err);
	job->known = known == 1;
	return known == 0 ? job_compress(frames, context, job, err) : known < 0 ? -1 : 0;
}

/* The collector's part. A known frame that was garbage collected meanwhile is made after all. */
static int job_collect(struct frames *frames, struct job *job, struct err *err)
{
	const char *name = frames->codec_name;
	int known = job->known ? blob_writer_add_known(frames->blob, name, &job->print, err) : 0;

	hasher_add(&frames->diff_id, (struct str){job->plain, job->plain_len});
	if (known != 0)
		return known < 0 ? -1 : 0;
	if (job->known && job_compress(frames, frames->context, job, err) < 0)
		return -1;
	return blob_writer_add_frame(frames->blob, name, &job->print, (uint32_t)job->plain_len,
				     (struct str){job->frame, job->frame_len}, err);
}

/* The next job for a worker, or NULL when there will be none. */
static struct job *frames_take_job(struct frames *frames)
{
	struct job *job = NULL;

	lock_take(&frames->lock);
	for (;;) {
		struct job *next = &frames->jobs[frames->taken % frames->slots];

		if (frames->why.kind != ERR_NONE)
			break;
		if (next->state == JOB_FILLED) {
			next->state = JOB_TAKEN;
			frames->taken++;
			job = next;
			break;
		}
		if (frames->ended)
			break;
		pthread_cond_wait(&frames->filled, &frames->lock.os);
	}
	lock_drop(&frames->lock);
	return job;
}

static void frames_put_job(struct frames *frames, struct job *job, int result,
			   const struct err *why)
{
	lock_take(&frames->lock);
	job->state = JOB_DONE;
	if (result < 0)
		frames_fail_locked(frames, why);
	pthread_cond_signal(&frames->done);
	lock_drop(&frames->lock);
}

static void *frames_worker(void *ctx)
{
	struct frames *frames = ctx;
	struct codec_context *context = frames->codec->open();
	struct job *job;

	while ((job = frames_take_job(frames))) {
		struct err err = {0};
		int result = job_work(frames, context, job, &err);

		frames_put_job(frames, job, result, &err);
	}
	frames->codec->close(context);
	return NULL;
}

/* The next job in order, done; NULL when all are in the blob, or one failed. */
static struct job *frames_next_done(struct frames *frames)
{
	struct job *job = NULL;

	lock_take(&frames->lock);
	for (;;) {
		struct job *next = &frames->jobs[frames->collected % frames->slots];

		if (frames->why.kind != ERR_NONE)
			break;
		if (next->state == JOB_DONE) {
			job = next;
			break;
		}
		if (frames->ended && frames->collected == frames->next)
			break;
		pthread_cond_wait(&frames->done, &frames->lock.os);
	}
	lock_drop(&frames->lock);
	return job;
}

static void *frames_collector(void *ctx)
{
	struct frames *frames = ctx;
	struct job *job;

	while ((job = frames_next_done(frames))) {
		struct err err = {0};
		int result = job_collect(frames, job, &err);

		lock_take(&frames->lock);
		job->state = JOB_FREE;
		frames->collected++;
		if (result < 0)
			frames_fail_locked(frames, &err);
		pthread_cond_signal(&frames->freed);
		lock_drop(&frames->lock);
	}
	return NULL;
}

static int frames_start_threads(struct frames *frames, struct err *err)
{
	if (thread_start(&frames->collector, frames_collector, frames, err) < 0)
		return -1;
	frames->threaded = true;
	while (frames->started < frames->workers) {
		if (thread_start(&frames->threads[frames->started], frames_worker, frames, err) < 0)
			return -1;
		frames->started++;
	}
	return 0;
}

static void frames_join(struct frames *frames)
{
	if (!frames->threaded)
		return;
	lock_take(&frames->lock);
	frames->ended = true;
	frames_wake_all_locked(frames);
	lock_drop(&frames->lock);
	for (size_t i = 0; i < frames->started; i++)
		(void)pthread_join(frames->threads[i], NULL);
	(void)pthread_join(frames->collector, NULL);
	frames->threaded = false;
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

static int frames_do_inline(struct frames *frames, struct str plain, struct err *err)
{
	struct job *job = &frames->jobs[0];

	job_fill(job, plain);
	frames->next++;
	frames->taken++;
	frames->collected++;
	if (job_work(frames, frames->context, job, err) < 0)
		return -1;
	return job_collect(frames, job, err);
}

int frames_add(struct frames *frames, struct str plain, struct err *err)
{
	struct job *job;
	int result = 0;

	if (!frames->threaded && frames->next < JOBS_INLINE)
		return frames_do_inline(frames, plain, err);
	if (!frames->threaded && frames_start_threads(frames, err) < 0)
		return -1;
	lock_take(&frames->lock);
	job = &frames->jobs[frames->next % frames->slots];
	while (job->state != JOB_FREE && frames->why.kind == ERR_NONE)
		pthread_cond_wait(&frames->freed, &frames->lock.os);
	if (frames->why.kind != ERR_NONE) {
		*err = frames->why;
		result = -1;
	}
	lock_drop(&frames->lock);
	if (result < 0)
		return -1;
	job_fill(job, plain); /* a free job is the caller's alone */
	lock_take(&frames->lock);
	job->state = JOB_FILLED;
	frames->next++;
	pthread_cond_signal(&frames->filled);
	lock_drop(&frames->lock);
	return 0;
}

int frames_open(struct store *store, enum layer_codec codec, struct frames **out, struct err *err)
{
	AUTO(frames) struct frames *frames = calloc(1, sizeof(*frames));

	if (!frames)
		abort();
	*frames = (struct frames){
		.store = store,
		.codec = codecs[codec],
		.workers = thread_cores(LAYER_WORKERS_MAX),
		.lock = LOCK_INIT,
		.filled = PTHREAD_COND_INITIALIZER,
		.done = PTHREAD_COND_INITIALIZER,
		.freed = PTHREAD_COND_INITIALIZER,
	};
	frames->slots = 2 * frames->workers + JOBS_SPARE;
	frames->codec->name(frames->codec_name);
	frames->context = frames->codec->open();
	hasher_init(&frames->diff_id);
	if (fingerprint_key(store, &frames->key, err) < 0 ||
	    blob_writer_open(store, &frames->blob, err) < 0)
		return -1;
	*out = steal_ptr(&frames);
	return 0;
}

void frames_close(struct frames *frames)
{
	struct err gone = {0};

	if (!frames)
		return;
	if (frames->threaded) {
		(void)err_set(&gone, ERR_CANCELLED, "the layer was given up");
		lock_take(&frames->lock);
		frames_fail_locked(frames, &gone);
		lock_drop(&frames->lock);
	}
	frames_join(frames);
	for (size_t i = 0; i < JOBS_MAX; i++) {
		free(frames->jobs[i].plain);
		free(frames->jobs[i].frame);
	}
	blob_writer_close(frames->blob);
	frames->codec->close(frames->context);
	hasher_done(&frames->diff_id);
	pthread_cond_destroy(&frames->filled);
	pthread_cond_destroy(&frames->done);
	pthread_cond_destroy(&frames->freed);
	free(frames);
}

/* An empty tar is one empty frame, since no bytes at all are no valid stream. */
static int frames_add_empty(struct frames *frames, struct err *err)
{
	struct job *job = &frames->jobs[0];

	job_fill(job, STR(""));
	if (job_compress(frames, frames->context, job, err) < 0)
		return -1;
	return blob_writer_add(frames->blob, (struct str){job->frame, job->frame_len}, err);
}

int frames_finish(struct frames *frames, struct layer_info *out, struct err *err)
{
	struct layer_info info = {0};
	struct blob_info blob;

	frames_join(frames);
	if (frames->why.kind != ERR_NONE) {
		*err = frames->why;
		return -1;
	}
	if ((frames->next == 0 && frames_add_empty(frames, err) < 0) ||
	    blob_writer_commit(frames->blob, NULL, &blob, err) < 0)
		return -1;
	hasher_final(&frames->diff_id, &info.diff_id);
	info.blob = blob.digest;
	info.blob_size = blob.size;
	info.new_bytes = blob_writer_new_bytes(frames->blob);
	*out = info;
	return 0;
}
