/* SPDX-License-Identifier: Apache-2.0 */
/* push_blobs.c - the blobs of one document, sent on several lanes. */
#include "layers/base/clock.h"
#include "layers/blob.h"
#include "registry/push_priv.h"

#include <inttypes.h>

#define PUSH_EVENT_MS 100 /* a person reads no faster */

/* The blobs of one document, each once. */
struct push_work {
	struct push *push;
	struct descriptor *jobs;
	size_t job_count;
};

/* A blob on its way, with an event now and then. */
struct push_teller {
	struct push *push;
	const struct descriptor *blob;
	int64_t told_ms;
};

static void push_teller_hear(void *ctx, uint64_t done)
{
	struct push_teller *teller = ctx;
	int64_t now = clock_monotonic_ms();

	if (now - teller->told_ms < PUSH_EVENT_MS)
		return;
	teller->told_ms = now;
	push_tell(teller->push, PUSH_BLOB, &teller->blob->digest, done, teller->blob->size);
}

static int push_send(struct push *push, struct http *http, const struct descriptor *blob,
		     struct str session, struct err *err)
{
	struct push_teller teller = {.push = push, .blob = blob};
	const struct upload_spec upload = {.store = push->store,
					   .digest = blob->digest,
					   .size = blob->size,
					   .session = session,
					   .progress = push_teller_hear,
					   .ctx = &teller};
	struct blob_info info;
	int found = blob_find(push->store, &blob->digest, &info, err);

	if (found < 0)
		return -1;
	if (found == 0)
		return err_set(err, ERR_NOT_FOUND, "it is not in the store; pull the image again");
	if (info.size != blob->size)
		return err_set(err, ERR_CORRUPT,
			       "blob of %" PRIu64 " bytes, the manifest says %" PRIu64, info.size,
			       blob->size);
	push_tell(push, PUSH_BLOB, &blob->digest, 0, blob->size);
	return upload_blob(push->remote, http, &upload, err);
}

/* What the registry has, here or in a repository that we know of, is not sent. */
static int push_blob(struct push *push, struct http *http, const struct descriptor *blob,
		     enum push_event_kind *out, struct err *err)
{
	auto_buf struct buf session = BUF_INIT(HTTP_URL_MAX);
	int held = upload_is_held(push->remote, http, &blob->digest, err);
	struct str from;

	*out = PUSH_BLOB_HELD;
	if (held != 0)
		return held < 0 ? -1 : 0;
	held = push_find_source(push, &blob->digest, &from, err);
	if (held == 1)
		held = upload_mount(push->remote, http, &blob->digest, from, &session, err);
	*out = PUSH_BLOB_MOUNTED;
	if (held != 0)
		return held < 0 ? -1 : 0;
	*out = PUSH_BLOB_DONE;
	return push_send(push, http, blob, buf_str(&session), err);
}

static int push_work_one(void *ctx, size_t lane, size_t job, struct err *err)
{
	const struct push_work *work = ctx;
	const struct descriptor *blob = &work->jobs[job];
	enum push_event_kind kind;
	char name[DIGEST_TEXT_MAX];
	struct http *http;

	if (push_lane(work->push, lane, &http, err) < 0)
		return -1;
	if (push_blob(work->push, http, blob, &kind, err) < 0)
		return err_ctx(err, "blob %s", digest_format(&blob->digest, name));
	push_tell(work->push, kind, &blob->digest, blob->size, blob->size);
	return 0;
}

static void push_work_add(struct push_work *work, const struct descriptor *blob)
{
	for (size_t i = 0; i < work->job_count; i++) {
		if (digest_equal(&work->jobs[i].digest, &blob->digest))
			return;
	}
	work->jobs[work->job_count++] = *blob;
}

int push_blobs(struct push *push, const struct closure *closure, struct err *err)
{
	auto_free struct descriptor *jobs = calloc(closure->count + 1, sizeof(*jobs));
	struct push_work work = {.push = push, .jobs = jobs};

	if (!jobs)
		abort();
	for (size_t i = 0; i < closure->count; i++) {
		if (closure->items[i].kind == CLOSURE_BLOB)
			push_work_add(&work, &closure->items[i].what);
	}
	return lanes_run(push_work_one, &work, work.job_count, &push->stop, err);
}
