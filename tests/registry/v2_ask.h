/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v2_ask.h - the registry asked as the daemon asks it, without a daemon.
 *
 *	struct v2_asker asker = {.v2 = {...}};
 *	asker.headers = "Content-Range: 0-4\n";
 *	asker.body = STR("hello");
 *	assert_int_equal(v2_ask(&asker, HTTP_PATCH, location), 202);
 *	... v2_said(&asker, "Location") ...
 *	v2_ask_done(&asker);
 *
 * Headers, body and faults count for one question.
 */
#pragma once

#include "registry/v2.h"
#include "tests/check.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define V2_ASK_PIECE ((size_t)100000) /* in which a body comes */

struct v2_asker {
	struct v2 v2;
	const char *headers; /* lines; or NULL */
	struct str body;     /* ptr NULL: none */
	bool chunked;        /* its length is not said */
	bool vanishes;       /* the client, when the body ends */
	const char *secret;  /* a repository that the client may not pull from, or NULL */
	/* The last answer: */
	struct http_response said;
	/* The question: */
	struct http_request request;
	struct source source;
	char value[1024]; /* of the header that was asked for last */
	char length[32];
};

static inline const char *v2_ask_header(const struct http_request *request, const char *name)
{
	struct v2_asker *asker = container_of(drop_const(request), struct v2_asker, request);
	struct str rest = str_of(asker->headers ? asker->headers : "");
	struct str line;

	if (strcasecmp(name, "Content-Length") == 0 && !asker->chunked && asker->body.ptr) {
		(void)snprintf(asker->length, sizeof(asker->length), "%zu", asker->body.len);
		return asker->length;
	}
	if (strcasecmp(name, "Transfer-Encoding") == 0)
		return asker->chunked ? "chunked" : NULL;
	while (str_cut(&rest, '\n', &line)) {
		struct str key;

		if (!str_cut(&line, ':', &key) || key.len != strlen(name) ||
		    strncasecmp(key.ptr, name, key.len) != 0)
			continue;
		(void)snprintf(asker->value, sizeof(asker->value), STR_FMT, STR_ARG(line));
		return asker->value;
	}
	return NULL;
}

static inline int v2_ask_read(struct source *source, struct str *out, struct err *err)
{
	struct v2_asker *asker = container_of(source, struct v2_asker, source);
	size_t n = asker->body.len < V2_ASK_PIECE ? asker->body.len : V2_ASK_PIECE;

	if (n == 0 && asker->vanishes)
		return err_set(err, ERR_CANCELLED, "the client has gone");
	if (n == 0)
		return 0;
	*out = (struct str){asker->body.ptr, n};
	asker->body = str_skip(asker->body, n);
	return 1;
}

static inline bool v2_ask_may(void *ctx, struct str repository, enum v2_action action)
{
	const struct v2_asker *asker = ctx;

	return action != V2_PULL || !asker->secret || !str_equal(repository, str_of(asker->secret));
}

static inline size_t v2_ask_query(struct str text, struct http_field *out)
{
	struct str one;
	size_t count = 0;

	while (text.len > 0 && str_cut(&text, '&', &one)) {
		assert_true(count < HTTP_QUERY_MAX);
		out[count].value = one;
		(void)str_cut(&out[count].value, '=', &out[count].name);
		count++;
	}
	return count;
}

/* The status of the answer to "/v2/...?...". */
static inline unsigned v2_ask(struct v2_asker *asker, enum http_method method, const char *target)
{
	struct http_field query[HTTP_QUERY_MAX];
	struct str rest = str_of(target);
	struct v2_call call = {.v2 = &asker->v2, .may = v2_ask_may, .may_ctx = asker};

	http_response_clear(&asker->said);
	asker->said = HTTP_RESPONSE_INIT;
	asker->source.read = v2_ask_read;
	asker->request = (struct http_request){
		.method = method, .query = query, .find_header = v2_ask_header};
	(void)str_cut(&rest, '?', &asker->request.path);
	asker->request.query_count = v2_ask_query(rest, query);
	asker->request.stream = &asker->source;
	call.request = &asker->request;
	call.response = &asker->said;
	if (v2_path_parse(&asker->request, &call.path, &asker->said) == 0)
		v2_answer(&call);
	v2_done(&call);
	asker->headers = NULL;
	asker->body = (struct str){0};
	asker->chunked = asker->vanishes = false;
	return asker->said.status;
}

/* A header of the answer; "" where it has none. */
static inline const char *v2_said(const struct v2_asker *asker, const char *name)
{
	for (size_t i = 0; i < asker->said.header_count; i++) {
		if (strcasecmp(asker->said.headers[i].name, name) == 0)
			return asker->said.headers[i].value;
	}
	return "";
}

/* Whether the answer is an error of this code. */
static inline bool v2_said_code(const struct v2_asker *asker, const char *code)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "\"code\":\"%s\"", code);
	return strstr(buf_str(&asker->said.body).ptr, text) != NULL;
}

static inline void v2_ask_done(struct v2_asker *asker)
{
	http_response_clear(&asker->said);
}
