/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http.h - a request and its answer, whoever carries them.
 *
 * A server (api/server.h) hands each request to one handler, in this order:
 *
 *	admit   the headers are there, the body is not
 *	answer  the body is there, or comes as a stream
 *	done    the answer was sent, or the client has gone
 *
 * An answer that is not known yet waits: `answer` leaves a topic (http_topic())
 * and a deadline, and is called once more when that topic has changed; with
 * `over` set when waiting has come to its end and it must answer now. A stream
 * waits in the same way. It is read by a thread that reads streams alone: it may
 * look for what it says, but other streams wait for it. What it has in memory it
 * may give without that way round (read_near). A waiting request takes a few KiB
 * of memory.
 *
 * Threads: the calls for one request never overlap; those for others do. By
 * terms.blocks a handler says that it may take its time (a commit, a body that
 * streams): `answer` is then called in a thread of this request's own. Else it
 * must not block, since its thread serves others, too.
 *
 * Ownership: what a request lends lives until done. A response owns what was
 * added to it.
 */
#pragma once

#include "layers/base/sink.h"

#include <stdbool.h>
#include <sys/types.h>

#define HTTP_QUERY_MAX ((size_t)32)                /* parameters of a request */
#define HTTP_HEADERS_MAX ((size_t)12)              /* of an answer, beside those of the server */
#define HTTP_ANSWER_MAX ((size_t)16 * 1024 * 1024) /* gathered in memory; streams have none */
#define HTTP_ETAG_MAX ((size_t)160)                /* with its quotes and a NUL */
#define HTTP_BYTES_UNKNOWN UINT64_MAX

enum http_method {
	HTTP_OTHER,
	HTTP_GET,
	HTTP_HEAD,
	HTTP_POST,
	HTTP_PUT,
	HTTP_PATCH,
	HTTP_DELETE,
	HTTP_OPTIONS,
};

struct http_field {
	struct str name;
	struct str value;
};

struct http_request {
	enum http_method method;
	struct str path; /* "/v1/agents.get", by http_unescape_path(); no NUL */
	const struct http_field *query;
	size_t query_count;
	struct str body;       /* whole, where it was gathered */
	struct source *stream; /* as it arrives, where the terms say so; else NULL */
	bool by_socket;        /* by the unix socket, which no browser reaches */
	const char *door;      /* what the listener that it came by is called; or NULL */
	bool waited;           /* it was asked before */
	bool over;             /* no more waiting */
	void *state;           /* the handler's own, from admit to done */
	const char *(*find_header)(const struct http_request *request, const char *name);
};

/* What is waited for: that something happens to a topic, at most until then. */
struct http_wait {
	uint64_t topic;
	int64_t until_ms; /* on the monotonic clock; 0 for no waiting at all */
};

/* A body that is made while it is sent. */
struct http_stream {
	/*
	 * Write at most max bytes to out: how many; 0 for none now, and *wait
	 * says for what; HTTP_STREAM_END; -1 cuts the connection, so that nobody
	 * takes the body for whole. at is how many there were before. `over` as
	 * in a request: say what is left, and end.
	 */
	ssize_t (*read)(struct http_stream *stream, uint64_t at, char *out, size_t max, bool over,
			struct http_wait *wait);
	void (*close)(struct http_stream *stream);
	/*
	 * NULL, or the same for what is in memory already: called in the thread
	 * that serves the connection, straight into what is sent. 0: it is not,
	 * and read() is called.
	 */
	ssize_t (*read_near)(struct http_stream *stream, uint64_t at, char *out, size_t max);
};
#define HTTP_STREAM_END ((ssize_t)-2)

struct http_header {
	const char *name; /* a literal */
	char *value;      /* owned */
};

struct http_response {
	unsigned status; /* 200 if nobody says otherwise */
	struct http_header headers[HTTP_HEADERS_MAX];
	size_t header_count;
	struct buf body;
	struct http_stream *stream; /* owned; or NULL, and body is all of it */
	uint64_t stream_bytes;      /* its length, or HTTP_BYTES_UNKNOWN */
	struct http_wait wait;      /* instead of all that */
};

#define HTTP_RESPONSE_INIT                                         \
	((struct http_response){.status = 200,                     \
				.body = BUF_INIT(HTTP_ANSWER_MAX), \
				.stream_bytes = HTTP_BYTES_UNKNOWN})

/* How a request's body is taken, and where its answer is made. */
struct http_terms {
	size_t body_max; /* of a gathered one; a larger one is ERR_LIMIT before it is read */
	bool streamed;   /* not gathered; blocks is then implied */
	bool blocks;
	uint64_t share; /* whose streamed body it is: one's own take no more than their share; or 0
			 */
};

struct http_handler {
	/* false: *out refuses the request, and its body is not read. */
	bool (*admit)(struct http_handler *handler, struct http_request *request,
		      struct http_terms *terms, struct http_response *out);
	void (*answer)(struct http_handler *handler, struct http_request *request,
		       struct http_response *out);
	/* out is what was sent; status 0 when the client had gone before. */
	void (*done)(struct http_handler *handler, struct http_request *request,
		     const struct http_response *out);
	/* A failure that the server itself found: too large, stalled. */
	void (*refuse)(struct http_handler *handler, const struct http_request *request,
		       const struct err *why, struct http_response *out);
};

/* NULL where the request has none. Lent. */
static inline const char *http_find_header(const struct http_request *request, const char *name)
{
	return request->find_header(request, name);
}

enum http_method http_method_parse(const char *text);
const char *http_method_name(enum http_method method);

/* Add a header; name is a literal. Text of others is cut at the first control character. */
void http_add_header(struct http_response *response, const char *name, struct str value);

/* Replace the body by this text. */
void http_set_body(struct http_response *response, const char *type, struct str text);

/* Release what it owns; it is HTTP_RESPONSE_INIT again. */
void http_response_clear(struct http_response *response);

/* The entity tag of what is called so: the name, a digest at the longest, in quotes. */
struct str http_etag(struct str name, char out[static HTTP_ETAG_MAX]);

/*
 * Whether an If-None-Match names this entity tag ("abc", with its quotes), or
 * any. Weak ones count, as they do for GET.
 */
bool http_etag_matches(const char *if_none_match, struct str etag);

/* Say the answer's entity tag. True, and the status is 304, where it is known already. */
bool http_add_etag(const struct http_request *request, struct http_response *response,
		   struct str etag);

/* The number of what is waited for: an id, or a word. */
uint64_t http_topic(struct str name);

/*
 * Append a text with all escaped that is no letter, no digit, none of -._~ and
 * none of `also`. The buf may hold a part of it on failure.
 */
int http_add_escaped(struct buf *out, struct str text, const char *also, struct err *err)
	MUST_CHECK;

/*
 * Decode %XX in place, and '+' where plus is set. False for an escape that is
 * none or for %00; text is then as it was.
 */
bool http_unescape(char *text, size_t *len, bool plus);

/*
 * Decode a path. An escaped / is no separator (RFC 3986, 2.2) and part of no name
 * here: a path with one stays as it was, as one with a wrong escape does. False
 * then, and nothing is called like that, since no name has a %.
 */
bool http_unescape_path(char *text, size_t *len);

static inline void auto_http_response_release(struct http_response *slot)
{
	http_response_clear(slot);
}
#define auto_http_response AUTO(http_response)
