/* SPDX-License-Identifier: Apache-2.0 */
/* v2.c - which file answers which kind of request. */
#include "registry/v2.h"

#include "registry/manifest.h"
#include "registry/v2_blob.h"
#include "registry/v2_blob_delete.h"
#include "registry/v2_catalog.h"
#include "registry/v2_manifest.h"
#include "registry/v2_referrers.h"
#include "registry/v2_tags.h"

#include <stdio.h>

static void v2_answer_ping(struct v2_call *call)
{
	http_set_body(call->response, "application/json", STR("{}"));
}

typedef void v2_answer_fn(struct v2_call *call);

static void v2_answer_blob(struct v2_call *call)
{
	if (call->path.action == V2_PULL)
		v2_blob_answer(call);
	else
		v2_blob_delete(call);
}

/* What has no row here is refused. */
static v2_answer_fn *const v2_answers[V2_KINDS] = {
	[V2_PING] = v2_answer_ping,         [V2_CATALOG] = v2_catalog_answer,
	[V2_TAGS] = v2_tags_answer,         [V2_REFERRERS] = v2_referrers_answer,
	[V2_MANIFEST] = v2_manifest_answer, [V2_BLOB] = v2_answer_blob,
};

void v2_terms(const struct v2_call *call, struct http_terms *out)
{
	enum http_method method = call->request->method;
	bool sends = method == HTTP_POST || method == HTTP_PATCH || method == HTTP_PUT;
	bool small = call->path.kind == V2_MANIFEST;

	*out = (struct http_terms){
		.body_max = sends && small ? MANIFEST_MAX : 0,
		.streamed = sends && !small,
		.blocks = call->path.action >= V2_PUSH,
	};
}

/* Whether it is no repository of ours that was asked for. */
static bool v2_answer_mirrored(struct v2_call *call)
{
	struct mirror_place place;
	struct err err;
	int found =
		call->v2->mirror ? mirror_route(call->v2->mirror, &call->path, &place, &err) : 0;

	if (found == 1)
		v2_mirror_answer(call, &place);
	else if (found < 0 && err.kind == ERR_INVALID)
		v2_refuse(call->response, 400, V2_NAME_INVALID, "%s", err.text);
	else if (found < 0)
		v2_refuse_err(call->response, &err);
	return found != 0;
}

void v2_answer_held(struct v2_call *call)
{
	v2_answer_fn *answer = v2_answers[call->path.kind];

	if (answer)
		answer(call);
	else
		v2_refuse(call->response, 405, V2_UNSUPPORTED, "this registry cannot do that");
}

void v2_answer(struct v2_call *call)
{
	http_add_header(call->response, "Docker-Distribution-Api-Version", STR("registry/2.0"));
	if (v2_answer_mirrored(call))
		return;
	if (call->path.ns.len > 0)
		v2_refuse(call->response, 403, V2_DENIED,
			  "this registry does not stand for " STR_FMT, STR_ARG(call->path.ns));
	else
		v2_answer_held(call);
}

struct str v2_name(const struct v2_call *call, char out[static V2_FULL_NAME_MAX])
{
	const struct v2_path *path = &call->path;
	struct mirror_place place;
	struct err ignored; /* who is no upstream is refused when it is asked for */
	int n;

	if (call->v2->mirror && mirror_route(call->v2->mirror, path, &place, &ignored) == 1)
		n = snprintf(out, V2_FULL_NAME_MAX, "%s", place.key);
	else if (path->ns.len > 0)
		n = snprintf(out, V2_FULL_NAME_MAX, STR_FMT "/" STR_FMT, STR_ARG(path->ns),
			     STR_ARG(path->repository));
	else
		return path->repository;
	return (struct str){out, (size_t)n};
}

void v2_done(struct v2_call *call)
{
	if (call->state)
		call->state_free(call->state);
	call->state = NULL;
}
