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
#include "registry/v2_upload.h"

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
	[V2_UPLOADS] = v2_upload_answer,    [V2_UPLOAD] = v2_upload_answer,
};

/* A session is opened: there is no body to stream. */
static bool v2_only_opens(const struct v2_call *call)
{
	const char *length = http_find_header(call->request, "Content-Length");
	struct str ignored;

	return call->path.kind == V2_UPLOADS && call->request->method == HTTP_POST &&
	       (!length || strcmp(length, "0") == 0) &&
	       !http_find_header(call->request, "Transfer-Encoding") &&
	       !v2_path_find(call->request, STR("mount"), &ignored) &&
	       !v2_path_find(call->request, STR("digest"), &ignored);
}

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
	if (v2_only_opens(call))
		*out = (struct http_terms){.blocks = true};
}

/* *err says why where it is nobody's. */
static void v2_find_owner(struct v2_call *call, struct err *err)
{
	const struct v2_path *path = &call->path;
	int found = 0;

	if (call->v2->mirror)
		found = mirror_route(call->v2->mirror, path, &call->place, err);
	else if (path->ns.len > 0 && path->repository.len > 0)
		found = err_set(err, ERR_DENIED, "this registry does not stand for " STR_FMT,
				STR_ARG(path->ns));
	call->owner = found == 1 ? V2_UPSTREAMS : found == 0 ? V2_OURS : V2_NOBODYS;
	if (found < 0)
		(void)snprintf(call->place.key, sizeof(call->place.key), STR_FMT "/" STR_FMT,
			       STR_ARG(path->ns), STR_ARG(path->repository));
}

static void v2_refuse_owner(struct v2_call *call)
{
	struct err err;

	(void)err_set(&err, ERR_UNAVAILABLE, "try again"); /* it has got one since */
	v2_find_owner(call, &err);
	if (err.kind == ERR_INVALID)
		v2_refuse(call->response, 400, V2_NAME_INVALID, "%s", err.text);
	else
		v2_refuse_err(call->response, &err);
}

void v2_answer_held(struct v2_call *call)
{
	v2_answer_fn *answer = v2_answers[call->path.kind];

	if (answer)
		answer(call);
	else
		v2_refuse(call->response, 405, V2_UNSUPPORTED, "this registry cannot do that");
}

struct str v2_name(struct v2_call *call)
{
	struct err ignored;

	if (call->owner == V2_NOT_KNOWN)
		v2_find_owner(call, &ignored);
	return call->owner == V2_OURS ? call->path.repository : str_of(call->place.key);
}

void v2_add_version(struct http_response *out)
{
	http_add_header(out, "Docker-Distribution-Api-Version", STR("registry/2.0"));
}

void v2_answer(struct v2_call *call)
{
	v2_add_version(call->response);
	(void)v2_name(call);
	if (call->owner == V2_UPSTREAMS)
		v2_mirror_answer(call, &call->place);
	else if (call->owner == V2_OURS)
		v2_answer_held(call);
	else
		v2_refuse_owner(call);
}

void v2_done(struct v2_call *call)
{
	if (call->state)
		call->state_free(call->state);
	call->state = NULL;
}
