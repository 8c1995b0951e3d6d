/* SPDX-License-Identifier: Apache-2.0 */
/* v2_desk.h - requests to a registry over a store, without a server in between. */
#pragma once

#include "layers/lease.h"
#include "registry/outline.h"
#include "registry/v2.h"
#include "tests/registry/stock.h"

static const enum digest_algorithm v2_both[] = {DIGEST_SHA256, DIGEST_SHA512};

struct v2_desk {
	struct v2 v2;
	struct http_response response; /* of the last request */
	const char *hidden;            /* the repository that who asks may not pull; or NULL */
};

/* What this thread's request says in Content-Type. */
static __thread const char *v2_desk_type;
static __thread const char *v2_desk_known; /* If-None-Match */

static inline const char *v2_desk_find(const struct http_request *request, const char *name)
{
	(void)request;
	if (strcmp(name, "If-None-Match") == 0)
		return v2_desk_known;
	return strcmp(name, "Content-Type") == 0 ? v2_desk_type : NULL;
}

static inline bool v2_desk_may(void *ctx, struct str repository, enum v2_action action)
{
	const struct v2_desk *desk = ctx;

	(void)action;
	return !desk->hidden || !str_equal(repository, str_of(desk->hidden));
}

/* PATH[?NAME=VALUE[&..]], without escapes. *fields has room for all. */
static inline size_t v2_desk_split(const char *target, struct str *path, struct http_field *fields)
{
	struct str rest = str_of(target);
	struct str field;
	size_t count = 0;

	(void)str_cut(&rest, '?', path);
	while (rest.len > 0 && str_cut(&rest, '&', &field)) {
		struct str name = STR("");

		(void)str_cut(&field, '=', &name);
		fields[count++] = (struct http_field){name, field};
	}
	return count;
}

/* Its status. */
static inline unsigned v2_ask(struct v2_desk *desk, enum http_method method, const char *target,
			      const char *type, struct str body)
{
	struct http_field fields[HTTP_QUERY_MAX];
	struct http_request request = {
		.method = method, .query = fields, .body = body, .find_header = v2_desk_find};
	struct v2_call call = {.v2 = &desk->v2,
			       .request = &request,
			       .response = &desk->response,
			       .may = v2_desk_may,
			       .may_ctx = desk};

	v2_desk_type = type;
	request.query_count = v2_desk_split(target, &request.path, fields);
	http_response_clear(&desk->response);
	if (v2_path_parse(&request, &call.path, &desk->response) == 0)
		v2_answer(&call);
	v2_done(&call);
	return desk->response.status;
}

static inline unsigned v2_get(struct v2_desk *desk, const char *target)
{
	return v2_ask(desk, HTTP_GET, target, NULL, STR(""));
}

static inline const char *v2_header(const struct v2_desk *desk, const char *name)
{
	for (size_t i = 0; i < desk->response.header_count; i++) {
		if (strcasecmp(desk->response.headers[i].name, name) == 0)
			return desk->response.headers[i].value;
	}
	return NULL;
}

static inline const char *v2_body(const struct v2_desk *desk)
{
	return buf_str(&desk->response.body).ptr;
}

/* It was refused, by this code. */
static inline void v2_check_refused(struct v2_desk *desk, unsigned status, const char *code)
{
	if (desk->response.status != status || !strstr(v2_body(desk), code))
		fail_msg("%u %s instead of %u %s", desk->response.status, v2_body(desk), status,
			 code);
}

static inline void v2_check_status(struct v2_desk *desk, unsigned status)
{
	if (desk->response.status != status)
		fail_msg("%u %s instead of %u", desk->response.status, v2_body(desk), status);
}

/* A blob that a repository holds. */
static inline struct stock v2_stock_blob(struct v2_desk *desk, const char *repository,
					 const char *text, enum digest_algorithm algorithm)
{
	AUTO(lease) struct lease *lease = NULL;
	struct repository_item item;
	struct stock stock;
	struct meta *meta;
	struct err err = {0};

	check_ok(lease_open(desk->v2.store, &lease, &err), &err);
	stock = stock_put(desk->v2.store, text, algorithm);
	item = stock_item(&stock, REPOSITORY_BLOB, REPOSITORY_PUSHED);
	check_ok(meta_begin(desk->v2.store, META_WRITE, &meta, &err), &err);
	check_ok(repository_put(meta, str_of(repository), &item, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
	return stock;
}

static inline struct v2_desk v2_desk_of(void **state)
{
	struct store_fixture *fixture = *state;

	return (struct v2_desk){.v2 = {.store = fixture->store, .recall = v2_recall_new()},
				.response = HTTP_RESPONSE_INIT};
}

static inline void auto_v2_desk_release(struct v2_desk *desk)
{
	http_response_clear(&desk->response);
	v2_recall_free(desk->v2.recall);
}
#define auto_v2_desk AUTO(v2_desk)
