/* SPDX-License-Identifier: Apache-2.0 */
/*
 * standin.h - a server that misbehaves as it is told, in place of a registry
 * that would not.
 *
 * It listens on a free port of 127.0.0.1 and hands each request, whole and one
 * at a time, to the test's function, which writes what it likes to the
 * connection. Every connection serves one request.
 */
#pragma once

#include "layers/base/buf.h"

#include <pthread.h>
#include <stdatomic.h>

struct standin;

struct standin_request {
	struct standin *server;
	int fd;           /* of the connection */
	int number;       /* from 1 */
	const char *text; /* the head: request line and headers, and what came with them */
	size_t len;       /* of the text */
	const char *method;
	const char *target; /* "/v2/…", query included */
};

typedef void standin_fn(void *ctx, const struct standin_request *request);

struct standin {
	int fd;
	int stopfd; /* readable once it should end */
	unsigned port;
	standin_fn *fn;
	void *ctx;
	pthread_t thread;
	atomic_int clients;  /* that connected */
	atomic_int requests; /* that they sent */
};

void standin_start(struct standin *standin, standin_fn *fn, void *ctx);

/* Returns when all who came were served, so that what they did is counted. May be called twice. */
void standin_stop(struct standin *standin);

/* Answer in printf's words; a body's length is up to the caller. */
void standin_say(const struct standin_request *request, const char *fmt, ...) PRINTF(2, 3);

/*
 * "HTTP/1.1 STATUS …", headers (each with \r\n, or ""), Content-Length, and the body. A request
 * may be answered before its own body is read: the rest is taken until the client has the answer.
 */
void standin_answer(const struct standin_request *request, const char *status, const char *headers,
		    struct str body);

/* Wait until the client has gone. */
void standin_await_goodbye(const struct standin_request *request);

/* Whether the head has this header with this value. */
bool standin_asked(const struct standin_request *request, const char *header);

/* Append so many bytes of the request's body. False where they do not come. */
bool standin_read_body(const struct standin_request *request, size_t size, struct buf *out,
		       struct err *err);
