/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_bench.h - a server with a handler of the tests' own on loopback, and
 * clients that speak to it byte by byte.
 *
 *	server_bench_open(&bench, &(struct server_options){0});
 *	fd = client_dial(&bench);
 *	client_get(fd, "/plain");
 *	assert_true(client_hear(fd, "/plain"));
 *	server_bench_close(&bench);
 *
 * What the handler does, by path; any other is answered with its body, or path:
 *
 *	/refused        403 before the body is read
 *	/wait  /due     waits for the topic "wait"; for 20 ms
 *	/slow           blocks until it is released
 *	/upload  /held  counts the bytes that stream in; once it is released
 *	/words          a stream: "one" for each change of the topic "words", and "end"
 *	/search         a stream that finds nothing until it is released
 *	/query          what its query says, as [name][value]
 *	/big  /near     SERVER_BENCH_BIG_BYTES; every other MiB of the latter is at hand
 */
#pragma once

#include "api/listen.h"
#include "api/server.h"
#include "layers/base/fd.h"
#include "layers/base/lock.h"
#include "tests/check.h"

#define SERVER_BENCH_PATIENCE_S 50
#define SERVER_BENCH_PATIENCE_MS ((int64_t)SERVER_BENCH_PATIENCE_S * 1000)
#define SERVER_BENCH_BIG_BYTES ((uint64_t)8 * 1024 * 1024)
#define SERVER_BENCH_BODY_MAX ((size_t)100) /* of one that does not stream */

struct server_bench {
	struct http_handler handler;
	struct server *server;
	char url[LISTEN_TEXT_MAX];
	struct lock lock;
	pthread_cond_t changed;
	/* guarded by lock: */
	unsigned asked;    /* calls of answer */
	unsigned done;     /* requests that are over */
	unsigned vanished; /* of these: without an answer */
	unsigned closed;   /* streams */
	bool released;
};

void server_bench_open(struct server_bench *bench, const struct server_options *given);

/* Drain the server, which takes no time where nobody is asking, and free it. */
void server_bench_close(struct server_bench *bench);

/* Wait until a counter has come so far. */
void server_bench_await(struct server_bench *bench, const unsigned *counter, unsigned wanted);

/* Wait until the server has so many requests. */
void server_bench_await_requests(const struct server_bench *bench, size_t wanted);

/* Let go on whoever blocks. */
void server_bench_release(struct server_bench *bench);

int client_dial(const struct server_bench *bench);

/* From another address of loopback: 127.0.0.LAST. */
int client_dial_from(const struct server_bench *bench, unsigned char last);
void client_say(int fd, const char *text);
void client_say_bytes(int fd, struct str bytes);
void client_get(int fd, const char *path);

/* An upload's header with more lines in it, and bytes that know where they stand. */
void client_upload(int fd, const char *more, size_t announced, size_t sent);

/* Read until the text is there; false at the end of the stream. */
bool client_hear(int fd, const char *text);

/* Nothing more comes: the server closes. */
bool client_hear_end(int fd);
