/* SPDX-License-Identifier: Apache-2.0 */
/*
 * route.h - the methods that can be called over HTTP: /v1/NAME.
 *
 * A method is a row of a table. Its parameters are listed, so that a request is
 * checked before the method is called: an unknown key is InvalidArgument with
 * the nearest known one, and so is a wrong type. By POST they are a JSON
 * object; methods that only read take GET, too, with the same names in the
 * query, and where the body is a stream or a document of its own the query has
 * them as well.
 *
 * A method answers by call->result, which is sent as JSON with status 200; by
 * route_answer_tagged(); or by the response itself. An error goes out as
 * {"error": {"code", "message", ...}} by the table of layers/base/err.c;
 * route_add_detail() adds members.
 *
 * Threads: ROUTE_READ is called in the thread that serves connections, and may
 * look up a few records; whatever takes longer is ROUTE_SLOW, or ROUTE_WRITE
 * where it changes something.
 */
#pragma once

#include "api/auth.h"
#include "layers/base/http.h"
#include "layers/base/json.h"

#define ROUTE_BODY_MAX ((size_t)1024 * 1024)

struct daemon;
struct call;

enum route_kind { ROUTE_READ, ROUTE_SLOW, ROUTE_WRITE };

enum route_type { ROUTE_STRING, ROUTE_INT, ROUTE_BOOL, ROUTE_OBJECT, ROUTE_ARRAY };

struct route_param {
	const char *name;
	enum route_type type;
	bool required;
};

/* What many methods take: {id}; {limit, cursor}; the same and {agentId}. */
extern const struct route_param route_id[1];
extern const struct route_param route_page[2];
extern const struct route_param route_agent_page[3];

struct route {
	const char *name; /* "agents.get" */
	enum token_level level;
	enum route_kind kind;
	const struct route_param *params;
	size_t param_count;
	int (*run)(struct call *call, struct err *err);
	size_t body_max; /* 0 for ROUTE_BODY_MAX */
	bool streamed;   /* the body is no JSON, and comes as request->stream */
	bool whole;      /* the body is a document of its own: request->body, and no parameters */
};

struct routes {
	const struct route *at;
	size_t count;
};

struct call {
	struct daemon *daemon;
	const struct route *route;
	const struct http_request *request;
	struct http_response *response;
	struct identity who;
	json_t *args;     /* owned: what was asked, an object that fits the parameters */
	json_t *result;   /* owned: what 200 says */
	json_t *details;  /* owned: members of an error beside code and message */
	int64_t until_ms; /* the end of waiting, on the monotonic clock; it stays between tries */
};

/* NULL where no table has it. */
const struct route *route_find(const struct routes *const *tables, struct str name);

/* ERR_NO_METHOD, with the nearest. Returns -1. */
int route_refuse(const struct routes *const *tables, struct str name, struct err *err);

/* Set call->args from the query or the body. */
int route_read_args(struct call *call, struct err *err) MUST_CHECK;

/* Read the arguments, call the method, and make its answer. */
void route_answer(struct call *call);

/* Release what the call made; also before the next try of a call that waits. */
void route_clear(struct call *call);

/* Add a member to the error that the method is about to return. value is taken over. */
void route_add_detail(struct call *call, const char *name, json_t *value);

/* Set call->until_ms, at the first try. */
void route_set_deadline(struct call *call, int64_t wait_ms);

/* A text's entity tag, with its quotes: of its SHA-256. */
struct str route_make_etag(struct str text, char out[static HTTP_ETAG_MAX]);

/*
 * Answer this JSON with its entity tag (with quotes), or 304 where the client
 * has it already. wait is NULL, or what to wait for before a 304.
 */
void route_answer_tagged(struct call *call, struct str json, struct str etag,
			 const struct http_wait *wait);

/* Write the error to the response. details may be NULL. */
void route_write_error(const struct err *why, const json_t *details, struct http_response *out);
