/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/mirror_answer_priv.h"

#include "layers/base/clock.h"

#include <stdio.h>

static void mirror_answer_visit_free(void *state)
{
	struct mirror_visit *visit = state;

	mirror_task_release(visit->task);
	free(visit);
}

struct mirror_visit *mirror_visit_of(struct v2_call *call)
{
	struct mirror_visit *visit = call->state;

	if (visit)
		return visit;
	visit = calloc(1, sizeof(*visit));
	if (!visit)
		abort();
	visit->began_ms = clock_monotonic_ms();
	call->state = visit;
	call->state_free = mirror_answer_visit_free;
	return visit;
}

void mirror_visit_drop(struct mirror_visit *visit)
{
	mirror_task_release(visit->task);
	visit->task = NULL;
}

/* A blob is given away while it comes; but HEAD and a range want to know how long it is. */
static bool mirror_answer_visit_is_ready(const struct v2_call *call, const struct mirror_task *task)
{
	if (mirror_task_is_done(task))
		return true;
	if (task->kind != MIRROR_FILL)
		return false;
	if (atomic_load(&task->size) != MIRROR_SIZE_UNKNOWN)
		return true;
	return atomic_load(&task->endless) && call->request->method == HTTP_GET &&
	       !http_find_header(call->request, "Range");
}

int mirror_visit_ask(struct v2_call *call, const struct mirror_wish *wish, int64_t patience_ms,
		     struct err *err)
{
	struct mirror_visit *visit = mirror_visit_of(call);

	if (!visit->task) {
		if (mirror_start(call->v2->mirror, wish, &visit->task, err) < 0)
			return -1;
		atomic_fetch_add(&wish->place->upstream->counts.misses, 1);
	}
	if (mirror_answer_visit_is_ready(call, visit->task)) {
		if (!mirror_task_is_done(visit->task) || visit->task->result == 0)
			return 1;
		*err = visit->task->err;
		return -1;
	}
	if (call->request->over)
		return err_set(err, ERR_UNAVAILABLE, "%s has not answered yet",
			       wish->place->upstream->host);
	call->response->wait = (struct http_wait){.topic = visit->task->topic,
						  .until_ms = visit->began_ms + patience_ms};
	return 0;
}

void mirror_mark_stale(struct v2_call *call, const struct mirror_place *place)
{
	atomic_fetch_add(&place->upstream->counts.stale, 1);
	/* Clients show 299 to their users, but not this one. */
	http_add_header(call->response, "Warning", STR("110 - \"response is stale\""));
}

void mirror_count_hit(const struct v2_call *call, const struct mirror_place *place)
{
	atomic_fetch_add(&place->upstream->counts.hits, !call->request->waited);
}

void mirror_serve(struct v2_call *call, const struct mirror_place *place,
		  const struct digest *digest)
{
	const struct v2_path asked = call->path;
	char name[DIGEST_TEXT_MAX];
	struct err err;

	call->path.repository = str_of(place->key);
	call->path.reference = str_of(digest_format(digest, name));
	call->path.by_digest = true;
	call->path.digest = *digest;
	v2_answer_held(call);
	call->path = asked;
	if (call->request->method == HTTP_GET)
		atomic_fetch_add(&place->upstream->counts.served,
				 call->response->stream ? call->response->stream_bytes
							: call->response->body.len);
	if (call->response->status != 404)
		return;
	/* It went in this moment: the upstream still has it. */
	(void)err_set(&err, ERR_UNAVAILABLE, "%s has to be fetched anew", name);
	mirror_refuse(call, place, &err);
}

static void mirror_answer_refuse_for_a_while(struct v2_call *call, const struct mirror_place *place,
					     unsigned status, enum v2_code code,
					     const struct err *why)
{
	char seconds[24];

	(void)snprintf(seconds, sizeof(seconds), "%lld",
		       (long long)mirror_upstream_retry_s(place->upstream));
	http_add_header(call->response, "Retry-After", str_of(seconds));
	v2_refuse(call->response, status, code, "%s", why->text);
}

static void mirror_answer_refuse_absent(struct v2_call *call, const struct mirror_place *place)
{
	enum v2_code code = call->path.kind == V2_BLOB       ? V2_BLOB_UNKNOWN
			    : call->path.kind == V2_MANIFEST ? V2_MANIFEST_UNKNOWN
							     : V2_NAME_UNKNOWN;

	v2_refuse(call->response, 404, code, "%s%s has no such thing in " STR_FMT,
		  place->by_default ? "no repository of that name is here, and " : "",
		  place->upstream->host, STR_ARG(mirror_place_path(place)));
}

/*
 * Who may push a name that nobody has yet hears that it is free, and not that
 * the default upstream keeps it from him: a push begins with such questions.
 */
static bool mirror_answer_refuse_is_free(const struct v2_call *call,
					 const struct mirror_place *place)
{
	return place->by_default && call->may &&
	       call->may(call->may_ctx, call->path.repository, V2_PUSH);
}

void mirror_refuse(struct v2_call *call, const struct mirror_place *place, const struct err *why)
{
	switch ((int)why->kind) {
	case ERR_NOT_FOUND:
		mirror_answer_refuse_absent(call, place);
		break;
	case ERR_UNAUTHORIZED:
	case ERR_DENIED:
		if (mirror_answer_refuse_is_free(call, place))
			mirror_answer_refuse_absent(call, place);
		else
			v2_refuse(call->response, 403, V2_DENIED, "%s", why->text);
		break;
	case ERR_BUSY:
		mirror_answer_refuse_for_a_while(call, place, 429, V2_TOOMANYREQUESTS, why);
		break;
	case ERR_REMOTE:
	case ERR_TIMEOUT:
	case ERR_UNAVAILABLE:
	case ERR_CANCELLED:
		mirror_answer_refuse_for_a_while(call, place, 503, V2_UNAVAILABLE, why);
		break;
	case ERR_CORRUPT:
	case ERR_LIMIT:
	case ERR_UNSUPPORTED:
		v2_refuse(call->response, 502, V2_UNKNOWN, "%s", why->text);
		break;
	default:
		v2_refuse_err(call->response, why);
		break;
	}
}

void v2_mirror_answer(struct v2_call *call, const struct mirror_place *place)
{
	if (call->path.ns.len > 0)
		http_add_header(call->response, "OCI-Namespace", call->path.ns);
	if (call->path.action != V2_PULL) {
		v2_refuse(call->response, 403, V2_DENIED,
			  "%s is a mirror of %s: push to a name of your own", place->key,
			  place->upstream->host);
		return;
	}
	switch (call->path.kind) {
	case V2_MANIFEST:
		mirror_answer_manifest(call, place);
		break;
	case V2_BLOB:
		mirror_answer_blob(call, place);
		break;
	case V2_TAGS:
		mirror_answer_tags(call, place);
		break;
	case V2_REFERRERS:
		mirror_answer_referrers(call, place);
		break;
	case V2_PING:
	case V2_CATALOG:
	case V2_UPLOADS:
	case V2_UPLOAD:
	case V2_KINDS:
		v2_refuse(call->response, 405, V2_UNSUPPORTED, "a mirror cannot do that");
		break;
	}
}
