/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/mirror_answer_priv.h"

#include "layers/base/clock.h"
#include "layers/blob.h"
#include "layers/use.h"
#include "registry/repository.h"
#include "registry/v2_blob.h"

#include <stdio.h>

#define MIRROR_LOOK_MS 200 /* a stream looks again, even if nobody told it */

/* A blob that is sent while it comes. */
struct arrival {
	struct http_stream stream;
	struct mirror_task *task; /* owned: a reference */
	uint64_t from;
	uint64_t size; /* of the part that was asked for; or HTTP_BYTES_UNKNOWN */
};

/* Where its end is, counted from its begin; UINT64_MAX while nobody knows. */
static uint64_t mirror_answer_blob_end(const struct arrival *arrival)
{
	if (arrival->size != HTTP_BYTES_UNKNOWN || !atomic_load(&arrival->task->whole))
		return arrival->size;
	return atomic_load(&arrival->task->size);
}

static ssize_t mirror_answer_blob_read(struct http_stream *stream, uint64_t at, char *out,
				       size_t max, bool over, struct http_wait *wait)
{
	struct arrival *arrival = container_of(stream, struct arrival, stream);
	const struct mirror_task *task = arrival->task;
	uint64_t next = arrival->from + at;
	bool done = mirror_task_is_done(task); /* before what is ready is looked at */
	uint64_t ready = mirror_fill_ready(task);
	uint64_t end = mirror_answer_blob_end(arrival);
	ssize_t n;

	if (at == end)
		return HTTP_STREAM_END;
	if (next >= ready) {
		*wait = (struct http_wait){.topic = task->topic,
					   .until_ms = clock_monotonic_ms() + MIRROR_LOOK_MS};
		return done || over ? -1 : 0;
	}
	if (max > ready - next)
		max = (size_t)(ready - next);
	if (max > end - at)
		max = (size_t)(end - at);
	n = mirror_fill_read(task, next, out, max);
	if (n > 0)
		atomic_fetch_add(&task->place.upstream->counts.served, (uint64_t)n);
	return n;
}

static ssize_t mirror_answer_blob_read_near(struct http_stream *stream, uint64_t at, char *out,
					    size_t max)
{
	struct arrival *arrival = container_of(stream, struct arrival, stream);
	const struct mirror_task *task = arrival->task;
	uint64_t next = arrival->from + at;
	uint64_t ready = mirror_fill_ready(task);
	uint64_t left = mirror_answer_blob_end(arrival) - at;
	ssize_t n;

	if (next >= ready || left == 0)
		return 0;
	if (left > ready - next)
		left = ready - next;
	n = mirror_fill_read_near(task, next, out, left < max ? (size_t)left : max);
	if (n > 0)
		atomic_fetch_add(&task->place.upstream->counts.served, (uint64_t)n);
	return n;
}

static void mirror_answer_blob_close(struct http_stream *stream)
{
	struct arrival *arrival = container_of(stream, struct arrival, stream);

	mirror_task_release(arrival->task);
	free(arrival);
}

static struct http_stream *mirror_answer_blob_open(struct mirror_visit *visit, uint64_t from,
						   uint64_t size)
{
	struct arrival *arrival = malloc(sizeof(*arrival));

	if (!arrival)
		abort();
	*arrival = (struct arrival){
		.stream = {mirror_answer_blob_read, mirror_answer_blob_close,
			   mirror_answer_blob_read_near},
		.task = visit->task,
		.from = from,
		.size = size,
	};
	visit->task = NULL;
	return &arrival->stream;
}

/* HEAD has no body: its stream, which is not read, says how long one would be. */
static void mirror_answer_blob_send(struct v2_call *call, struct mirror_visit *visit)
{
	uint64_t size = atomic_load(&visit->task->size);
	struct v2_range range;

	if (!v2_blob_begin(call, call->path.reference, size, &range))
		return;
	call->response->stream = mirror_answer_blob_open(visit, range.first, range.count);
	call->response->stream_bytes = range.count;
}

/* 1 it can be served by what is here, 0, -1. *out_stored: the bytes are, if not the leave. */
static int mirror_answer_blob_find_held(const struct v2_call *call,
					const struct mirror_place *place, bool *out_stored,
					struct digest *out, struct err *err)
{
	const struct digest *digest = &call->path.digest;
	AUTO(meta) struct meta *meta = NULL;
	struct repository_item item;
	struct blob_info info;
	int stored = blob_find(call->v2->store, digest, &info, err);
	int found;

	if (stored < 0 || meta_begin(call->v2->store, META_READ, &meta, err) < 0)
		return -1;
	*out_stored = stored == 1;
	if (stored == 0)
		return 0;
	found = repository_find(meta, str_of(place->key), REPOSITORY_BLOB, digest, &item, err);
	if (found == 1)
		*out = item.blob;
	return found;
}

static void mirror_answer_blob_serve(struct v2_call *call, const struct mirror_place *place,
				     const struct digest *blob)
{
	use_note(call->v2->store, blob);
	mirror_serve(call, place, &call->path.digest);
	if (call->response->stream)
		mirror_pin_stream(call->v2->mirror, blob, call->response);
}

/* Ask for it by GET: there is no shorter way, or it was tried. */
static int mirror_answer_blob_want(struct v2_call *call, struct mirror_wish *wish, struct err *err)
{
	wish->kind = MIRROR_FILL;
	return mirror_visit_ask(call, wish, MIRROR_WAIT_MS, err);
}

/* Ask for leave alone, where that is all that is needed; then as mirror_answer_blob_want(). */
static int mirror_answer_blob_check(struct v2_call *call, struct mirror_wish *wish, bool stored,
				    struct err *err)
{
	struct mirror_visit *visit = mirror_visit_of(call);
	bool heads = call->request->method == HTTP_HEAD;
	int result;

	if (!visit->task) {
		wish->kind = MIRROR_FILL;
		visit->task = mirror_task_join(call->v2->mirror, wish);
	}
	if (visit->task ? visit->task->kind == MIRROR_FILL : !heads && !stored)
		return mirror_answer_blob_want(call, wish, err);
	wish->kind = MIRROR_CHECK;
	result = mirror_visit_ask(call, wish, MIRROR_WAIT_MS, err);
	if (result == 0 || (result == 1 && heads) || (result < 0 && err->kind != ERR_UNSUPPORTED))
		return result;
	mirror_visit_drop(visit);
	return mirror_answer_blob_want(call, wish, err);
}

/* Somebody else's fetch was over just when this one was to begin. */
static bool mirror_answer_blob_has_no_stage(const struct mirror_task *task)
{
	return task->kind == MIRROR_FILL && task->fd < 0;
}

static int mirror_answer_blob_serve_fetched(struct v2_call *call, const struct mirror_place *place,
					    struct err *err)
{
	struct digest blob;
	bool stored;
	int held = mirror_answer_blob_find_held(call, place, &stored, &blob, err);

	if (held == 0)
		return err_set(err, ERR_UNAVAILABLE, "the blob was here, and has gone again");
	if (held == 1)
		mirror_answer_blob_serve(call, place, &blob);
	return held < 0 ? -1 : 0;
}

void mirror_answer_blob(struct v2_call *call, const struct mirror_place *place)
{
	struct mirror_wish wish = {
		.place = place, .name = call->path.reference, .digest = &call->path.digest};
	struct digest blob;
	bool stored = false;
	struct err err;
	int held = mirror_answer_blob_find_held(call, place, &stored, &blob, &err);
	int result;

	if (held < 0) {
		v2_refuse_err(call->response, &err);
		return;
	}
	if (held == 1) {
		mirror_count_hit(call, place);
		mirror_answer_blob_serve(call, place, &blob);
		return;
	}
	result = mirror_answer_blob_check(call, &wish, stored, &err);
	if (result == 1 && mirror_answer_blob_has_no_stage(mirror_visit_of(call)->task))
		result = mirror_answer_blob_serve_fetched(call, place, &err);
	if (result < 0)
		mirror_refuse(call, place, &err);
	else if (result == 1)
		mirror_answer_blob_send(call, mirror_visit_of(call));
}
