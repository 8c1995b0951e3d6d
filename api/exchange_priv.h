/* SPDX-License-Identifier: Apache-2.0 */
/* exchange_priv.h - one request and its answer on a connection of libmicrohttpd. */
#pragma once

#include "api/feed.h"
#include "api/inlet.h"
#include "api/pool.h"
#include "api/server.h"
#include "api/watch.h"
#include "layers/base/lock.h"

#include <microhttpd.h>
#include <stdatomic.h>

struct server_door {
	struct server *server;
	struct MHD_Daemon *daemon;
	bool by_socket;
	const char *name;
};

struct server {
	struct server_options options;
	struct watch *watch;
	struct pool *pool;
	struct pool *body_pool;
	struct pool *stream_pool;
	struct server_door doors[SERVER_LISTENERS_MAX];
	size_t door_count;
	char said[256]; /* libmicrohttpd's own message, while a listener is started */
	atomic_size_t requests;
	atomic_size_t bodies;  /* that stream, or wait for a thread */
	atomic_size_t sending; /* answers that stream */
	atomic_bool draining;
	struct lock lock;
	pthread_cond_t quiet; /* requests is 0, while draining */
};

enum exchange_state {
	EXCHANGE_RECEIVING,
	EXCHANGE_ASKING,
	EXCHANGE_RUNNING,
	EXCHANGE_ANSWERED,
	EXCHANGE_WAITING,
	EXCHANGE_SENT,
};

struct exchange {
	struct waiter waiter;
	struct pool_job job;
	struct server *server;
	struct MHD_Connection *connection;
	struct link *link;
	struct http_request request;
	struct http_response response;
	struct http_terms terms;
	char *path;                 /* owned */
	struct http_field *query;   /* owned */
	struct http_field *headers; /* owned; copied for a job that may outlive the connection */
	size_t header_count;
	struct buf body;     /* gathered */
	struct inlet *inlet; /* of a streamed body, else NULL */
	struct feed feed;    /* of a streamed answer */
	size_t block;        /* the bytes of it that are in memory at one time */
	uint64_t mark;
	size_t came;  /* bytes of the body that nobody kept, or that came since the last deadline */
	bool streams; /* it is among the server's bodies */
	bool refused;
	bool sent;
	atomic_int state;
	atomic_int refs;
};

/* One reference less; the last one frees it. */
void exchange_unref(struct exchange *exchange);

/* Suspend until the job calls; false where it has already. */
bool exchange_await_job(struct exchange *exchange);

/* Hand the answer to libmicrohttpd. */
enum MHD_Result exchange_send(struct exchange *exchange);

/* libmicrohttpd's calls; cls is the struct server_door. */
enum MHD_Result exchange_handle(void *cls, struct MHD_Connection *connection, const char *url,
				const char *method, const char *version, const char *upload,
				size_t *upload_size, void **slot);
void exchange_completed(void *cls, struct MHD_Connection *connection, void **slot,
			enum MHD_RequestTerminationCode why);
void exchange_connected(void *cls, struct MHD_Connection *connection, void **slot,
			enum MHD_ConnectionNotificationCode what);

/* A request's first line, where libmicrohttpd has cut it. */
struct exchange_line {
	struct MHD_Connection *connection;
	const char *method;
	const char *url;
	const char *version;
};

/*
 * The length of the body as the headers have it: 0 for none, UINT64_MAX where it
 * is not said. Else what is wrong: what makes the request ambiguous, so that a
 * proxy in front of us might see another one, or its body as the next.
 */
const char *exchange_read_frame(const struct exchange_line *line, uint64_t *out_length);

/* A number for where a request comes from: 0 for this host's socket. */
uint64_t exchange_read_origin(struct MHD_Connection *connection);

/* The path of a request, as http.h has it; the caller's to free. */
char *exchange_copy_path(const char *url);

/* In one allocation, which is the caller's to free; NULL where there are none. */
struct http_field *exchange_copy_fields(struct MHD_Connection *connection, enum MHD_ValueKind kind,
					size_t *out_count);

/* Decode those of a query, in place. False: one has an escape that is none. */
bool exchange_unescape_fields(struct http_field *fields, size_t count);

/* For struct watch_calls. */
void exchange_suspend(struct waiter *waiter);
void exchange_resume(struct waiter *waiter);
