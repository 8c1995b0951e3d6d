/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server.h - HTTP/1.1 by libmicrohttpd: connections become requests of http.h.
 *
 * Each listener has threads that serve its connections by epoll; what does not
 * block is answered there. What blocks has a thread of its own for as long as it
 * takes (pool.h), so a commit never holds up a read. So has a body that streams;
 * one too many stays with its client until a thread is free, and so does one more
 * than half of all that come from one visitor (terms.share), or than three quarters
 * from one address. Streams are read by
 * a few threads, a piece of one after a piece of another (feed.h), so that all
 * who catch up together hold up nobody else. What waits has no thread (watch.h).
 *
 * Bounds: the headers of a request are SERVER_HEAD_BYTES at most and come in
 * header_ms; a body comes whole in body_ms, a streamed one at 64 KiB each
 * body_ms; a connection is idle for idle_ms. Whoever is slower is closed. A
 * body that is refused is read over up to SERVER_SWALLOW_BYTES, since a client
 * may not look for an answer before it has sent it; one that says at once that it
 * is larger gets its answer at once.
 *
 * What a header hides, or may be read in two ways, is refused by 400 in the words
 * of the handler, and is its connection's last request. What libmicrohttpd cannot
 * read it refuses before anybody here is asked, and also closes: a first line or a
 * version that is none (400, 505), a line without a colon (400), a Content-Length
 * that is no number (400, 413), wrong chunks (400, 413), headers that are larger
 * than SERVER_CONNECTION_BYTES (414, 431). Its answer is a sentence of HTML without a Content-Type;
 * 0.9.75 has no call and no option by which it could be another.
 *
 * Threads: server_wake() may be called by any.
 */
#pragma once

#include "layers/base/http.h"

#define SERVER_HEAD_BYTES ((size_t)12 * 1024)
/* Memory of a connection. A body is read by half of it, which each request touches. */
#define SERVER_CONNECTION_BYTES ((size_t)24 * 1024)
#define SERVER_SWALLOW_BYTES ((size_t)64 * 1024 * 1024)
#define SERVER_CONNECTIONS_MAX 4096
#define SERVER_LISTENERS_MAX 32
#define SERVER_BODIES_MAX ((size_t)48) /* that stream at one time: each has a thread */
#define SERVER_BODIES_WAITING_MAX ((size_t)1024)
#define SERVER_JOBS_MAX ((size_t)64) /* that are done at one time */
#define SERVER_JOBS_WAITING_MAX ((size_t)1024)
#define SERVER_STREAM_THREADS ((size_t)2)
#define SERVER_STREAMS_WAITING_MAX ((size_t)16 * 1024) /* one of each connection */
#define SERVER_HEADER_MS 30000
#define SERVER_BODY_MS 60000
#define SERVER_IDLE_MS 75000

struct server;

struct server_options {
	struct http_handler *handler; /* borrowed */
	unsigned connections_max;     /* of a listener; these are 0 for the defaults above */
	int64_t header_ms;
	int64_t body_ms;
	int64_t idle_ms;
};

struct server_listener {
	int fd; /* listening; taken over */
	bool by_socket;
	const char *name; /* its requests' door; NULL, or it lives as long as the server */
	unsigned threads;
	const char *tls_cert; /* PEM, or NULL for plain HTTP */
	const char *tls_key;
};

int server_new(const struct server_options *options, struct server **out, struct err *err)
	MUST_CHECK;

/* Serve what connects to it, from now on. */
int server_listen(struct server *server, struct server_listener *listener, struct err *err)
	MUST_CHECK;

/* Something happened to a topic (http_topic()): wake all who wait for it. */
void server_wake(struct server *server, uint64_t topic);

/*
 * Close connections as they come, end all waiting, and wait until all requests are
 * answered. Clients that still send, or are sent to, when half of the time has
 * passed are cut. False: some requests were not done in time.
 */
bool server_drain(struct server *server, int64_t timeout_ms);

/* Close all connections and end all threads. Only after server_drain() returned true. */
void server_free(struct server *server);

struct server_load {
	size_t connections;
	size_t requests; /* that are not answered yet */
	size_t waiting;  /* of these: those that wait for a topic */
};
struct server_load server_load(struct server *server);
