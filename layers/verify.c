/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.c - the work is cut in pieces, which the workers take one by one: the
 * blobs, largest first, then the chunks by the first byte of their names. So a
 * store of one blob keeps two cores busy.
 *
 * The chunks of a blob that has its digest have the right bytes, too, and are
 * not hashed again.
 */
#include "layers/base/clock.h"
#include "layers/base/thread.h"
#include "layers/verify_priv.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>

#define VERIFY_RANGES ((size_t)256)
#define VERIFY_BATCH 64 /* chunks that one transaction sees */

struct verify {
	const struct store_blobs *blobs;
	const struct verify_survey *survey;
	atomic_size_t next; /* piece */
	atomic_size_t working;
	_Atomic uint64_t done; /* bytes */
	_Atomic uint64_t chunks;
	_Atomic uint64_t chunk_bytes;
	struct cancel finished; /* raised by the last worker */
	struct cancel stop;     /* raised by one that failed */
	struct lock lock;
	/* guarded by lock: */
	struct verify_findings *out;
	struct digest_set whole; /* chunks of blobs that are */
	struct err err;
};

static void verify_fail_locked(struct verify *verify, const struct err *err) REQUIRES(verify->lock);
static void verify_fail_locked(struct verify *verify, const struct err *err)
{
	if (verify->err.kind == ERR_NONE)
		verify->err = *err;
	cancel_raise(&verify->stop);
}

static int verify_found(struct verify *verify, struct digest_set *set, const struct digest *digest,
			struct err *err)
{
	int added;

	lock_take(&verify->lock);
	added = digest_set_add(set, digest, err);
	lock_drop(&verify->lock);
	return added < 0 ? -1 : 0;
}

static bool verify_knows(struct verify *verify, const struct digest *id)
{
	bool known;

	lock_take(&verify->lock);
	known = digest_set_has(&verify->whole, id);
	lock_drop(&verify->lock);
	return known;
}

static int verify_mark_chunk(void *ctx, const struct blob_chunk *chunk, struct err *err)
{
	struct verify *verify = ctx;

	return verify_found(verify, &verify->whole, &chunk->id, err);
}

/* The chunks of a whole blob need no check of their own. */
static int verify_mark(struct verify *verify, const struct digest *blob, struct err *err)
{
	AUTO(txn) MDB_txn *txn = NULL;
	struct blob_entry entry;
	int found;

	if (db_begin(&verify->blobs->db, DB_READ, &txn, err) < 0)
		return -1;
	found = blob_entry_find(verify->blobs, txn, blob, &entry, err);
	if (found <= 0)
		return found;
	return blob_list_each(verify->blobs, txn, &entry, verify_mark_chunk, verify, err);
}

static int verify_one_blob(struct verify *verify, const struct verify_blob *blob, struct err *err)
{
	int whole =
		blob->single ? 1 : verify_blob(verify->blobs, &blob->digest, &verify->stop, err);

	atomic_fetch_add(&verify->done, blob->single ? 0 : blob->size);
	if (whole < 0 || blob->single)
		return whole < 0 ? -1 : 0;
	if (whole == 1)
		return verify_mark(verify, &blob->digest, err);
	return verify_found(verify, &verify->out->blobs, &blob->digest, err);
}

/* Chunks behind *after whose names begin with its first byte. 1 there are more, 0, -1. */
static int verify_chunks(struct verify *verify, struct digest *after, bool *started,
			 struct err *err)
{
	const struct store_blobs *blobs = verify->blobs;
	AUTO(txn) MDB_txn *txn = NULL;
	AUTO(cursor) MDB_cursor *cursor = NULL;
	uint8_t first = after->bytes[0];
	MDB_val key = {*started ? 32 : 1, after->bytes};
	MDB_val value;
	int rc;

	if (db_begin(&blobs->db, DB_READ, &txn, err) < 0)
		return -1;
	rc = mdb_cursor_open(txn, blobs->chunks, &cursor);
	rc = rc ? rc : mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
	for (int i = 0; rc == 0 && i < VERIFY_BATCH; i++) {
		struct digest id = {.algorithm = DIGEST_SHA256};

		if (key.mv_size != 32 || *(const uint8_t *)key.mv_data != first)
			return 0;
		memcpy(id.bytes, key.mv_data, 32);
		if ((!*started || !digest_equal(&id, after)) && !verify_knows(verify, &id) &&
		    !verify_chunk(&id, db_str(value)) &&
		    verify_found(verify, &verify->out->chunks, &id, err) < 0)
			return -1;
		if (!*started || !digest_equal(&id, after)) {
			atomic_fetch_add(&verify->done, value.mv_size);
			atomic_fetch_add(&verify->chunk_bytes, value.mv_size);
			atomic_fetch_add(&verify->chunks, 1);
		}
		*after = id;
		*started = true;
		rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
	}
	if (rc == MDB_NOTFOUND)
		return 0;
	return rc == 0 ? 1 : db_fail(&blobs->db, rc, err);
}

static int verify_range(struct verify *verify, size_t range, struct err *err)
{
	struct digest after = {.algorithm = DIGEST_SHA256, .bytes = {(uint8_t)range}};
	bool started = false;
	int more;

	do {
		more = cancel_check(&verify->stop, err) < 0
			       ? -1
			       : verify_chunks(verify, &after, &started, err);
	} while (more == 1);
	return more;
}

static void *verify_work(void *ctx)
{
	struct verify *verify = ctx;
	size_t blobs = verify->survey->blob_count;
	struct err err = {0};
	int result = 0;

	while (result == 0) {
		size_t piece = atomic_fetch_add(&verify->next, 1);

		if (piece >= blobs + VERIFY_RANGES)
			break;
		result = piece < blobs
				 ? verify_one_blob(verify, &verify->survey->blobs[piece], &err)
				 : verify_range(verify, piece - blobs, &err);
	}
	lock_take(&verify->lock);
	if (result < 0)
		verify_fail_locked(verify, &err);
	lock_drop(&verify->lock);
	if (atomic_fetch_sub(&verify->working, 1) == 1)
		cancel_raise(&verify->finished);
	return NULL;
}

static void verify_wait(struct verify *verify, const struct verify_options *options)
{
	struct pollfd fds[] = {{.fd = cancel_fd(&verify->finished), .events = POLLIN},
			       {.fd = cancel_fd(options->cancel), .events = POLLIN}};

	while (!cancel_is_raised(&verify->finished)) {
		(void)poll(fds, 2, VERIFY_PROGRESS_MS);
		if (fds[1].revents) {
			cancel_raise(&verify->stop);
			fds[1].fd = -1;
			fds[1].revents = 0;
		}
		if (options->progress)
			options->progress(options->ctx, atomic_load(&verify->done),
					  verify->survey->bytes);
	}
}

static int verify_hash(struct verify *verify, const struct verify_options *options, struct err *err)
{
	pthread_t threads[VERIFY_WORKERS_MAX];
	size_t count = thread_cores(VERIFY_WORKERS_MAX);
	size_t started = 0;

	atomic_init(&verify->working, count);
	while (started < count && thread_start(&threads[started], verify_work, verify, err) == 0)
		started++;
	if (started < count) {
		cancel_raise(&verify->stop);
		if (atomic_fetch_sub(&verify->working, count - started) == count - started)
			cancel_raise(&verify->finished);
	}
	verify_wait(verify, options);
	for (size_t i = 0; i < started; i++)
		(void)pthread_join(threads[i], NULL);
	if (started < count || cancel_check(options->cancel, err) < 0)
		return -1;
	if (verify->err.kind == ERR_NONE)
		return 0;
	*err = verify->err;
	return -1;
}

static int verify_largest_first(const void *a, const void *b)
{
	const struct verify_blob *left = a;
	const struct verify_blob *right = b;

	return (left->size < right->size) - (left->size > right->size);
}

static int verify_take_damaged(struct verify_survey *survey, struct verify_findings *out,
			       struct err *err)
{
	struct digest digest;
	size_t at = 0;

	while (digest_set_next(&survey->damaged, &at, &digest)) {
		if (digest_set_add(&out->blobs, &digest, err) < 0)
			return -1;
	}
	out->wrong_counts = survey->wrong_counts;
	out->blob_count = survey->blob_count;
	if (survey->blob_count > 0)
		qsort(survey->blobs, survey->blob_count, sizeof(*survey->blobs),
		      verify_largest_first);
	return 0;
}

/* A blob of one chunk is whole if its chunk is. */
static int verify_judge_singles(const struct verify_survey *survey, struct verify_findings *out,
				struct err *err)
{
	for (size_t i = 0; i < survey->blob_count; i++) {
		const struct verify_blob *blob = &survey->blobs[i];

		if (blob->single && digest_set_has(&out->chunks, &blob->digest) &&
		    digest_set_add(&out->blobs, &blob->digest, err) < 0)
			return -1;
	}
	return 0;
}

int verify_read(struct store *store, const struct verify_options *options,
		struct verify_findings *out, struct err *err)
{
	auto_verify_findings struct verify_findings findings = {0};
	auto_verify_survey struct verify_survey survey = {0};
	struct verify verify = {.survey = &survey, .out = &findings, .lock = LOCK_INIT};
	int64_t start = clock_monotonic_ms();
	int result;

	if (store_blobs(store, &verify.blobs, err) < 0 ||
	    verify_survey_read(verify.blobs, &survey, err) < 0 ||
	    verify_take_damaged(&survey, &findings, err) < 0 ||
	    cancel_init(&verify.finished, err) < 0)
		return -1;
	result = cancel_init(&verify.stop, err);
	if (result == 0) {
		result = verify_hash(&verify, options, err);
		cancel_done(&verify.stop);
	}
	cancel_done(&verify.finished);
	digest_set_done(&verify.whole);
	if (result < 0 || verify_judge_singles(&survey, &findings, err) < 0)
		return -1;
	findings.chunk_count = verify.chunks;
	findings.chunk_bytes = verify.chunk_bytes;
	findings.ms = clock_monotonic_ms() - start;
	*out = findings;
	findings = (struct verify_findings){0};
	return 0;
}

void verify_done(struct verify_findings *findings)
{
	digest_set_done(&findings->chunks);
	digest_set_done(&findings->blobs);
	*findings = (struct verify_findings){0};
}
