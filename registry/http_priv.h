/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_priv.h - one request and its answer, over libcurl, as a client: a call
 * and its reply (the request and the response of layers/base/http.h are a
 * server's).
 *
 * A struct http is a pool of connections that belongs to one thread. It sends
 * what it is told to, once: no redirect is followed, no request repeated and no
 * challenge answered here (remote.c does), so that a credential goes to the one
 * URL that it was given for.
 *
 * Certificates are always verified. Bytes are as the server sent them: nothing
 * is asked for compressed, and what comes so anyway is not unpacked. A peer
 * that brings or takes less than HTTP_STALL_BYTES in stall_ms while we wait for
 * it is given up; the time in which a sink or source makes us wait does not
 * count. A document has to be there, whole, within document_ms.
 */
#pragma once

#include "layers/base/cancel.h"
#include "layers/base/http.h"
#include "layers/base/secret.h"
#include "layers/base/sink.h"

#include <stdint.h>

#define HTTP_REPLY_HEADERS_MAX ((size_t)64 * 1024) /* of all answers to one request */
#define HTTP_ERROR_BODY_MAX ((size_t)8 * 1024)     /* enough for any list of errors */
#define HTTP_URL_MAX ((size_t)16 * 1024)           /* signed URLs are long */
#define HTTP_STALL_BYTES 1024
#define HTTP_CONNECT_MS 15000
#define HTTP_STALL_MS 30000
#define HTTP_COMMIT_STALLS 10         /* stall_ms for a server to keep what it was sent */
#define HTTP_DOCUMENT_MS 120000       /* 4 MiB at 35 kB a second */
#define HTTP_RETRY_AFTER_MAX_MS 60000 /* what a server may ask us to wait */

struct http;

struct http_options {
	const char *ca_file; /* NULL for the system's */
	int connect_ms;      /* 0 for HTTP_CONNECT_MS */
	int stall_ms;        /* 0 for HTTP_STALL_MS */
	int document_ms;     /* 0 for HTTP_DOCUMENT_MS */
	const struct cancel *cancel;
	const struct cancel *cancel_too; /* of the work that this is a part of; may be NULL */
};

/* Borrows what options point to. */
int http_open(const struct http_options *options, struct http **out, struct err *err) MUST_CHECK;
void http_close(struct http *http);

/* Whose certificates are trusted from now on, beside the system's; or NULL. Borrowed. */
void http_trust(struct http *http, const char *ca_file);

/* Wait so long, or until a descriptor can be read; or fail with ERR_CANCELLED. */
int http_wait(const struct http *http, int64_t ms, struct err *err) MUST_CHECK;
int http_wait_readable(const struct http *http, int fd, struct err *err) MUST_CHECK;

/* A body that is sent: `size` bytes of a source, which can begin again. */
struct http_upload {
	struct source source;
	uint64_t size;
	int (*rewind)(struct http_upload *upload, struct err *err);
};

struct http_call {
	const char *url;
	enum http_method method;
	bool direct;        /* by no proxy: the host is this one */
	bool document;      /* all of it within document_ms */
	const char *accept; /* the header's value, or NULL, here and below */
	const char *range;  /* "0-99" */
	const char *content_type;
	const char *content_range;   /* "0-99", as uploads have it: without a unit */
	const struct secret *bearer; /* a token; empty for none, or NULL */
	const char *user;            /* with password: Basic; or NULL */
	const struct secret *password;
	struct sink *body;          /* gets the body of a 200 or 206, once the headers are there */
	struct http_upload *upload; /* POST, PUT, PATCH; NULL sends an empty body */
};

struct http_reply {
	long status;                 /* 0 where none arrived */
	struct buf headers;          /* "Name: value\n" each, of the last response */
	struct buf error_body;       /* of any other status, as far as it fits */
	char location[HTTP_URL_MAX]; /* where the answer points: absolute, or "" */
	int64_t retry_after_ms;      /* at most HTTP_RETRY_AFTER_MAX_MS; -1 where none was said */
	bool worth_retrying;         /* after a failure: another try may end otherwise */
	int nearness;                /* of whom it came from, the host or a proxy: url_priv.h's */
};

/*
 * 0 whatever the status is, and as soon as an error's body is longer than what
 * is kept of it; -1 where no whole answer came: ERR_REMOTE,
 * ERR_TIMEOUT, ERR_LIMIT (headers), ERR_CANCELLED, or what the sink failed with.
 * *response is valid in both cases, and may be used again.
 */
int http_send(struct http *http, const struct http_call *request, struct http_reply *response,
	      struct err *err) MUST_CHECK;

/* The value of a header, by its name in any case, or "". */
struct str http_header(const struct http_reply *response, const char *name);

/* The same for one that may come several times: *rest starts as the headers. */
bool http_header_next(struct str *rest, const char *name, struct str *out);

void http_reply_done(struct http_reply *response);

DEFINE_AUTO(http, struct http *, http_close);
static inline void auto_http_reply_release(struct http_reply *slot)
{
	http_reply_done(slot);
}
#define auto_http_reply AUTO(http_reply)
