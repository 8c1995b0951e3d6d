/* SPDX-License-Identifier: Apache-2.0 */
/* server_test.c - a server with a handler of the test's own, asked over loopback. */
#include "api/listen.h"
#include "api/server.h"
#include "layers/base/clock.h"
#include "layers/base/lock.h"
#include "tests/check.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>

#define PATIENCE_S 50
#define PATIENCE_MS ((int64_t)PATIENCE_S * 1000)
#define BIG_BYTES ((uint64_t)8 * 1024 * 1024)
#define BODY_MAX 100

/* What the handler does, by path. */
struct bench {
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
	bool released;     /* /slow may end, and /search */
};

static void bench_count(struct bench *bench, unsigned *counter)
{
	lock_take(&bench->lock);
	(*counter)++;
	(void)pthread_cond_broadcast(&bench->changed);
	lock_drop(&bench->lock);
}

/* Wait until a counter has come so far. */
static void bench_await(struct bench *bench, const unsigned *counter, unsigned wanted)
{
	struct timespec until;
	int late = 0;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_S;
	lock_take(&bench->lock);
	while (*counter < wanted && late == 0)
		late = pthread_cond_timedwait(&bench->changed, &bench->lock.os, &until);
	lock_drop(&bench->lock);
	assert_int_equal(late, 0);
}

/* A stream that says a word for each change of its topic. */
struct words {
	struct http_stream stream;
	struct bench *bench;
	bool said;
};

static ssize_t words_say(char *out, struct str word)
{
	memcpy(out, word.ptr, word.len);
	return (ssize_t)word.len;
}

static ssize_t words_read(struct http_stream *stream, uint64_t at, char *out, size_t max, bool over,
			  struct http_wait *wait)
{
	struct words *words = container_of(stream, struct words, stream);

	(void)at;
	assert_true(max >= 4);
	if (over) {
		if (words->said)
			return HTTP_STREAM_END;
		words->said = true;
		return words_say(out, STR("end\n"));
	}
	if (words->said) {
		words->said = false;
		*wait = (struct http_wait){http_topic(STR("words")), INT64_MAX};
		bench_count(words->bench, &words->bench->asked);
		return 0;
	}
	words->said = true;
	return words_say(out, STR("one\n"));
}

static void words_close(struct http_stream *stream)
{
	struct words *words = container_of(stream, struct words, stream);

	bench_count(words->bench, &words->bench->closed);
	free(words);
}

/* A stream that looks for what it says until it is released, and finds nothing. */
struct search {
	struct http_stream stream;
	struct bench *bench;
};

static void bench_await_release(struct bench *bench)
{
	bench_count(bench, &bench->asked);
	lock_take(&bench->lock);
	while (!bench->released)
		(void)pthread_cond_wait(&bench->changed, &bench->lock.os);
	lock_drop(&bench->lock);
}

static void bench_release(struct bench *bench)
{
	lock_take(&bench->lock);
	bench->released = true;
	(void)pthread_cond_broadcast(&bench->changed);
	lock_drop(&bench->lock);
}

static ssize_t search_read(struct http_stream *stream, uint64_t at, char *out, size_t max,
			   bool over, struct http_wait *wait)
{
	(void)at;
	(void)over;
	(void)wait;
	memset(out, 0, max);
	bench_await_release(container_of(stream, struct search, stream)->bench);
	return HTTP_STREAM_END;
}

static void search_close(struct http_stream *stream)
{
	struct search *search = container_of(stream, struct search, stream);

	bench_count(search->bench, &search->bench->closed);
	free(search);
}

static struct http_stream *search_new(struct bench *bench)
{
	struct search *search = calloc(1, sizeof(*search));

	assert_non_null(search);
	*search = (struct search){{search_read, search_close}, bench};
	return &search->stream;
}

/* Bytes that know where they stand. */
static ssize_t big_read(struct http_stream *stream, uint64_t at, char *out, size_t max, bool over,
			struct http_wait *wait)
{
	(void)stream;
	(void)over;
	(void)wait;
	for (size_t i = 0; i < max; i++)
		out[i] = (char)('a' + (at + i) % 26);
	return (ssize_t)max;
}

/* Every other MiB of it is at hand, though the last bytes of such a one are not. */
static ssize_t near_read(struct http_stream *stream, uint64_t at, char *out, size_t max)
{
	const uint64_t unit = UINT64_C(1024) * 1024;
	uint64_t left = unit - at % unit;

	if (at / unit % 2 != 0 || left <= 100)
		return 0;
	return big_read(stream, at, out, left - 100 < max ? (size_t)(left - 100) : max, false,
			NULL);
}

static void big_close(struct http_stream *stream)
{
	(void)stream;
}

static bool admit(struct http_handler *handler, struct http_request *request,
		  struct http_terms *terms, struct http_response *out)
{
	(void)handler;
	terms->body_max = BODY_MAX;
	terms->streamed =
		str_equal(request->path, STR("/upload")) || str_equal(request->path, STR("/held"));
	terms->blocks = str_equal(request->path, STR("/slow"));
	if (http_find_header(request, "From"))
		terms->share = http_topic(str_of(http_find_header(request, "From")));
	if (!str_equal(request->path, STR("/refused")))
		return true;
	out->status = 403;
	http_set_body(out, "text/plain", STR("no"));
	return false;
}

static void answer_upload(struct http_request *request, struct http_response *out)
{
	char text[64];
	struct str piece;
	uint64_t total = 0;
	uint64_t wrong = 0;
	struct err err = {0};
	int got;

	while ((got = request->stream->read(request->stream, &piece, &err)) == 1) {
		for (size_t i = 0; i < piece.len; i++, total++)
			wrong += piece.ptr[i] != (char)('a' + total % 26);
		if (http_find_header(request, "X-Enough") && total > 1000)
			break;
	}
	(void)snprintf(text, sizeof(text), "%llu bytes, %llu wrong", (unsigned long long)total,
		       (unsigned long long)wrong);
	http_set_body(out, "text/plain", str_of(got < 0 ? err.text : text));
}

static void answer(struct http_handler *handler, struct http_request *request,
		   struct http_response *out)
{
	static struct http_stream big = {big_read, big_close, NULL};
	static struct http_stream near = {big_read, big_close, near_read};
	struct bench *bench = container_of(handler, struct bench, handler);
	struct words *words;

	if (str_equal(request->path, STR("/wait")) && !request->waited) {
		out->wait = (struct http_wait){http_topic(STR("wait")),
					       clock_monotonic_ms() + PATIENCE_MS};
	} else if (str_equal(request->path, STR("/wait"))) {
		http_set_body(out, "text/plain", request->over ? STR("over") : STR("woken"));
	} else if (str_equal(request->path, STR("/due")) && !request->over) {
		out->wait = (struct http_wait){1, clock_monotonic_ms() + 20};
	} else if (str_equal(request->path, STR("/slow"))) {
		bench_await_release(bench);
		http_set_body(out, "text/plain", STR("slow"));
		return;
	} else if (str_equal(request->path, STR("/held"))) {
		bench_await_release(bench);
		answer_upload(request, out);
		return;
	} else if (str_equal(request->path, STR("/upload"))) {
		answer_upload(request, out);
	} else if (str_equal(request->path, STR("/words"))) {
		words = calloc(1, sizeof(*words));
		assert_non_null(words);
		*words = (struct words){{words_read, words_close}, bench, false};
		out->stream = &words->stream;
		return;
	} else if (str_equal(request->path, STR("/search"))) {
		out->stream = search_new(bench);
		return;
	} else if (str_equal(request->path, STR("/big"))) {
		out->stream = &big;
		out->stream_bytes = BIG_BYTES;
	} else if (str_equal(request->path, STR("/near"))) {
		out->stream = &near;
		out->stream_bytes = BIG_BYTES;
	} else {
		http_set_body(out, "text/plain",
			      request->body.len > 0 ? request->body : request->path);
	}
	bench_count(bench, &bench->asked);
}

static void done(struct http_handler *handler, struct http_request *request,
		 const struct http_response *out)
{
	struct bench *bench = container_of(handler, struct bench, handler);

	(void)request;
	if (out->status == 0)
		bench_count(bench, &bench->vanished);
	bench_count(bench, &bench->done);
}

static void refuse(struct http_handler *handler, const struct http_request *request,
		   const struct err *why, struct http_response *out)
{
	(void)handler;
	(void)request;
	out->status = (unsigned)err_http_status(why->kind);
	http_set_body(out, "text/plain", str_of(why->text));
}

static void bench_open(struct bench *bench, const struct server_options *given)
{
	struct server_options options = *given;
	struct server_listener listener = {.threads = 2};
	struct err err = {0};

	*bench = (struct bench){.handler = {admit, answer, done, refuse}, .lock = LOCK_INIT};
	(void)pthread_cond_init(&bench->changed, NULL);
	options.handler = &bench->handler;
	check_ok(server_new(&options, &bench->server, &err), &err);
	listener.fd = listen_tcp("127.0.0.1:0", bench->url, &err);
	check_ok(listener.fd, &err);
	check_ok(server_listen(bench->server, &listener, &err), &err);
}

static void bench_close(struct bench *bench)
{
	assert_true(server_drain(bench->server, PATIENCE_MS));
	server_free(bench->server);
}

static int dial(const struct bench *bench)
{
	struct timeval patience = {.tv_sec = PATIENCE_S};
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct str port = str_of(strchr(bench->url, ':') + 1);
	uint64_t number = 0;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(str_take_number(&port, &number));
	to.sin_port = htons((uint16_t)number);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
	return fd;
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static void get(int fd, const char *path)
{
	char text[256];

	(void)snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
	say(fd, text);
}

/* Read until the text is there; false at the end of the stream. */
static bool hear(int fd, const char *text)
{
	char heard[64 * 1024];
	size_t len = 0;

	while (len < sizeof(heard)) {
		ssize_t n = recv(fd, heard + len, sizeof(heard) - len, 0);

		if (n <= 0)
			return false;
		len += (size_t)n;
		if (memmem(heard, len, text, strlen(text)))
			return true;
	}
	return false;
}

/* Nothing more comes: the server closes. */
static bool hear_end(int fd)
{
	char rest[4096];
	ssize_t n;

	while ((n = recv(fd, rest, sizeof(rest), 0)) > 0)
		;
	return n == 0 || errno == ECONNRESET;
}

static void a_connection_serves_many_requests(void **state)
{
	struct bench bench;
	auto_close int fd = -1;

	(void)state;
	bench_open(&bench, &(struct server_options){0});
	fd = dial(&bench);
	for (int i = 0; i < 3; i++) {
		get(fd, "/plain");
		assert_true(hear(fd, "\r\n\r\n/plain"));
		get(fd, "/refused");
		assert_true(hear(fd, "403"));
	}
	say(fd, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody");
	assert_true(hear(fd, "\r\n\r\nbody"));
	bench_close(&bench);
}

static void who_waits_is_woken_or_told_that_it_is_over(void **state)
{
	struct bench bench;
	auto_close int fd = -1;

	(void)state;
	bench_open(&bench, &(struct server_options){0});
	fd = dial(&bench);
	get(fd, "/wait");
	bench_await(&bench, &bench.asked, 1);
	server_wake(bench.server, http_topic(STR("another")));
	server_wake(bench.server, http_topic(STR("wait")));
	assert_true(hear(fd, "woken"));
	get(fd, "/due");
	assert_true(hear(fd, "/due"));
	get(fd, "/wait");
	bench_await(&bench, &bench.asked, 5); /* /due was asked twice */
	assert_true(server_drain(bench.server, PATIENCE_MS));
	assert_true(hear(fd, "over"));
	server_free(bench.server);
}

static void a_client_that_leaves_while_it_waits_is_noticed(void **state)
{
	struct bench bench;
	int fd;

	(void)state;
	bench_open(&bench, &(struct server_options){0});
	fd = dial(&bench);
	get(fd, "/wait");
	bench_await(&bench, &bench.asked, 1);
	(void)close(fd);
	bench_await(&bench, &bench.vanished, 1);
	bench_close(&bench);
}

static void what_blocks_does_not_hold_up_others(void **state)
{
	struct bench bench;
	int slow[6];

	(void)state;
	bench_open(&bench, &(struct server_options){0});
	for (size_t i = 0; i < 6; i++) {
		slow[i] = dial(&bench);
		get(slow[i], "/slow");
	}
	bench_await(&bench, &bench.asked, 6);
	assert_int_equal(server_load(bench.server).waiting, 0); /* these are worked on */
	for (int i = 0; i < 8; i++) {
		auto_close int fd = dial(&bench);

		get(fd, "/plain");
		assert_true(hear(fd, "/plain"));
	}
	lock_take(&bench.lock);
	bench.released = true;
	(void)pthread_cond_broadcast(&bench.changed);
	lock_drop(&bench.lock);
	for (size_t i = 0; i < 6; i++) {
		assert_true(hear(slow[i], "slow"));
		(void)close(slow[i]);
	}
	bench_close(&bench);
}

static void a_stream_waits_and_ends_with_the_server(void **state)
{
	struct bench bench;
	auto_close int fd = -1;
	int gone;

	(void)state;
	bench_open(&bench, &(struct server_options){0});
	fd = dial(&bench);
	get(fd, "/words");
	assert_true(hear(fd, "one\n"));
	bench_await(&bench, &bench.asked, 1);
	server_wake(bench.server, http_topic(STR("words")));
	assert_true(hear(fd, "one\n"));
	bench_await(&bench, &bench.asked, 2);
	gone = dial(&bench);
	get(gone, "/words");
	bench_await(&bench, &bench.asked, 3);
	(void)close(gone);
	bench_await(&bench, &bench.closed, 1);
	assert_true(server_drain(bench.server, PATIENCE_MS));
	assert_true(hear(fd, "end\n"));
	server_free(bench.server);
	assert_int_equal(bench.closed, 2);
}

static void streams_that_search_hold_up_no_request(void **state)
{
	struct bench bench;
	auto_close int fd = -1;
	int searching[4];

	(void)state;
	bench_open(&bench, &(struct server_options){0});
	for (size_t i = 0; i < 4; i++) {
		searching[i] = dial(&bench);
		get(searching[i], "/search");
	}
	bench_await(&bench, &bench.asked, SERVER_STREAM_THREADS);
	fd = dial(&bench);
	get(fd, "/plain");
	assert_true(hear(fd, "/plain"));
	(void)close(searching[0]);
	bench_release(&bench);
	for (size_t i = 1; i < 4; i++) {
		assert_true(hear(searching[i], "0\r\n\r\n"));
		(void)close(searching[i]);
	}
	bench_await(&bench, &bench.closed, 4);
	bench_close(&bench);
}

static void nothing_of_a_stream_is_sent_to_who_asks_for_its_head(void **state)
{
	struct bench bench;
	auto_close int fd = -1;
	char heard[4096];
	size_t len = 0;
	ssize_t n;

	(void)state;
	bench_open(&bench, &(struct server_options){0});
	fd = dial(&bench);
	say(fd, "HEAD /words HTTP/1.1\r\nHost: x\r\n\r\n"
		"GET /plain HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	while ((n = recv(fd, heard + len, sizeof(heard) - len, 0)) > 0)
		len += (size_t)n;
	assert_non_null(memmem(heard, len, "\r\n\r\nHTTP/1.1 200 OK", 19));
	assert_non_null(memmem(heard, len, "/plain", 6));
	bench_await(&bench, &bench.closed, 1);
	bench_close(&bench);
}

/* The answer's header, and then bytes that know where they stand. */
static void take_big(int fd)
{
	static char piece[64 * 1024];
	uint64_t at = 0;

	for (char end[4] = ""; memcmp(end, "\r\n\r\n", 4) != 0;) {
		memmove(end, end + 1, 3);
		assert_int_equal(recv(fd, end + 3, 1, 0), 1);
	}
	while (at < BIG_BYTES) {
		ssize_t n = recv(fd, piece, sizeof(piece), 0);

		assert_true(n > 0);
		for (ssize_t i = 0; i < n; i++, at++)
			assert_int_equal(piece[i], 'a' + at % 26);
	}
}

static void a_stream_of_known_length_is_whole(void **state)
{
	static const char *const paths[] = {"/big", "/near"};
	struct bench bench;
	auto_close int fd = -1;

	(void)state;
	bench_open(&bench, &(struct server_options){0});
	fd = dial(&bench);
	for (size_t i = 0; i < 2; i++) {
		get(fd, paths[i]);
		take_big(fd);
	}
	get(fd, "/plain");
	assert_true(hear(fd, "/plain"));
	bench_close(&bench);
}

static void many_streams_at_once_are_whole_too(void **state)
{
	struct bench bench;
	int fds[40]; /* more than have large blocks */

	(void)state;
	bench_open(&bench, &(struct server_options){0});
	for (size_t i = 0; i < 40; i++) {
		fds[i] = dial(&bench);
		get(fds[i], i % 2 == 0 ? "/near" : "/big");
	}
	bench_await(&bench, &bench.asked, 40);
	for (size_t i = 0; i < 20; i++)
		take_big(fds[i]);
	for (size_t i = 0; i < 40; i++) /* half of them leave in the middle */
		assert_int_equal(close(fds[i]), 0);
	bench_close(&bench);
}

/* Say the header of an upload, and bytes that know where they stand. */
static void upload(int fd, const char *more, size_t announced, size_t sent)
{
	static char piece[26 * 1024];
	char text[256];

	(void)snprintf(text, sizeof(text),
		       "POST /upload HTTP/1.1\r\nHost: x\r\n%sContent-Length: %zu\r\n\r\n", more,
		       announced);
	say(fd, text);
	for (size_t i = 0; i < sizeof(piece); i++)
		piece[i] = (char)('a' + i % 26);
	while (sent > 0) {
		size_t n = sent < sizeof(piece) ? sent : sizeof(piece);

		assert_int_equal(send(fd, piece, n, MSG_NOSIGNAL), (ssize_t)n);
		sent -= n;
	}
}

static void a_body_streams_to_who_reads_it(void **state)
{
	struct bench bench;
	auto_close int fd = -1;
	auto_close int gone = -1;

	(void)state;
	bench_open(&bench, &(struct server_options){0});
	fd = dial(&bench);
	upload(fd, "", 3000000, 3000000);
	assert_true(hear(fd, "3000000 bytes, 0 wrong"));
	upload(fd, "", 0, 0);
	assert_true(hear(fd, "0 bytes, 0 wrong"));
	upload(fd, "X-Enough: 1\r\n", 2000000, 2000000);
	assert_true(hear(fd, "bytes, 0 wrong"));
	gone = dial(&bench);
	upload(gone, "", 3000000, 1000000);
	(void)shutdown(gone, SHUT_RDWR);
	bench_await(&bench, &bench.vanished, 1);
	bench_close(&bench);
}

static void bodies_above_those_that_have_a_thread_wait_for_one(void **state)
{
	int fds[SERVER_BODIES_MAX + 3];
	struct bench bench;

	(void)state;
	bench_open(&bench, &(struct server_options){0});
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		fds[i] = dial(&bench);
		say(fds[i], "POST /held HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nabcd");
	}
	bench_await(&bench, &bench.asked, SERVER_BODIES_MAX);
	while (server_load(bench.server).requests < sizeof(fds) / sizeof(fds[0]))
		(void)poll(NULL, 0, 1);
	bench_release(&bench);
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		assert_true(hear(fds[i], "4 bytes, 0 wrong"));
		(void)close(fds[i]);
	}
	bench_close(&bench);
}

static void nobody_has_more_than_half_of_the_threads_for_bodies(void **state)
{
	int fds[SERVER_BODIES_MAX + 3];
	size_t last = sizeof(fds) / sizeof(fds[0]) - 1;
	struct bench bench;

	(void)state;
	bench_open(&bench, &(struct server_options){0});
	for (size_t i = 0; i < last; i++) {
		fds[i] = dial(&bench);
		say(fds[i], "POST /held HTTP/1.1\r\nHost: x\r\nFrom: a\r\n"
			    "Content-Length: 4\r\n\r\nabcd");
	}
	bench_await(&bench, &bench.asked, SERVER_BODIES_MAX / 2);
	while (server_load(bench.server).requests < last)
		(void)poll(NULL, 0, 1);
	fds[last] = dial(&bench);
	say(fds[last], "POST /upload HTTP/1.1\r\nHost: x\r\nFrom: b\r\n"
		       "Content-Length: 4\r\n\r\nabcd");
	assert_true(hear(fds[last], "4 bytes, 0 wrong"));
	bench_release(&bench);
	for (size_t i = 0; i <= last; i++) {
		if (i < last)
			assert_true(hear(fds[i], "4 bytes, 0 wrong"));
		(void)close(fds[i]);
	}
	bench_close(&bench);
}

static void a_body_that_is_too_large_is_refused(void **state)
{
	struct bench bench;
	auto_close int fd = -1;
	auto_close int chunked = -1;
	auto_close int expecting = -1;
	char body[256];

	(void)state;
	bench_open(&bench, &(struct server_options){0});
	memset(body, 'x', sizeof(body) - 1);
	body[sizeof(body) - 1] = '\0';
	fd = dial(&bench);
	say(fd, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 255\r\n\r\n");
	say(fd, body);
	assert_true(hear(fd, "413"));
	get(fd, "/plain");
	assert_true(hear(fd, "\r\n\r\n/plain"));
	chunked = dial(&bench);
	say(chunked, "POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n");
	say(chunked, body);
	say(chunked, "\r\n0\r\n\r\n");
	assert_true(hear(chunked, "413"));
	expecting = dial(&bench);
	say(expecting, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n");
	assert_true(hear(expecting, "413"));
	assert_true(hear_end(expecting));
	bench_close(&bench);
}

static void a_request_that_can_be_read_in_two_ways_is_refused(void **state)
{
	static const char *const wrong[] = {
		"Host: x\r\nHost: y\r\n",
		"Host: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n",
		"Host: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n",
		"Host: x\r\nTransfer-Encoding: gzip\r\n",
	};
	struct bench bench;

	(void)state;
	bench_open(&bench, &(struct server_options){0});
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		auto_close int fd = dial(&bench);

		say(fd, "POST /plain HTTP/1.1\r\n");
		say(fd, wrong[i]);
		say(fd, "\r\n");
		assert_true(hear(fd, "400 Bad Request"));
		assert_true(hear_end(fd));
	}
	bench_close(&bench);
}

static void who_is_slow_with_headers_or_body_is_closed(void **state)
{
	const struct server_options options = {.header_ms = 50, .body_ms = 50, .idle_ms = 50};
	struct bench bench;
	auto_close int silent = -1;
	auto_close int half = -1;
	auto_close int stalled = -1;
	auto_close int streaming = -1;
	auto_close int idle = -1;

	(void)state;
	bench_open(&bench, &options);
	silent = dial(&bench);
	half = dial(&bench);
	say(half, "GET /plain HTTP/1.1\r\nHost:");
	stalled = dial(&bench);
	say(stalled, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\nhalf");
	streaming = dial(&bench);
	say(streaming, "POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\nabcd");
	idle = dial(&bench);
	get(idle, "/plain");
	assert_true(hear(idle, "/plain"));
	assert_true(hear_end(idle));
	assert_true(hear_end(silent));
	assert_true(hear_end(half));
	assert_true(hear_end(stalled));
	assert_true(hear_end(streaming));
	bench_await(&bench, &bench.vanished, 2);
	bench_close(&bench);
}

static void a_drain_waits_only_so_long(void **state)
{
	struct bench bench;
	auto_close int late = -1;
	auto_close int fd = -1;

	(void)state;
	bench_open(&bench, &(struct server_options){0});
	fd = dial(&bench);
	get(fd, "/slow");
	bench_await(&bench, &bench.asked, 1);
	assert_false(server_drain(bench.server, 10));
	late = dial(&bench);
	assert_true(hear_end(late));
	assert_int_equal(server_load(bench.server).requests, 1);
	bench_release(&bench);
	assert_true(hear(fd, "Connection: close"));
	assert_true(server_drain(bench.server, PATIENCE_MS));
	server_free(bench.server);
}

static void a_drain_cuts_clients_that_stall(void **state)
{
	struct bench bench;
	auto_close int sending = -1;
	auto_close int streaming = -1;
	auto_close int reading = -1;

	(void)state;
	bench_open(&bench, &(struct server_options){0});
	sending = dial(&bench);
	say(sending, "POST /plain HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
	streaming = dial(&bench);
	upload(streaming, "", (size_t)BODY_MAX * 1000, BODY_MAX);
	reading = dial(&bench);
	get(reading, "/big");
	bench_await(&bench, &bench.asked, 1);
	while (server_load(bench.server).requests < 3)
		(void)poll(NULL, 0, 1);
	/* The cut is made by the first one, whether or not all have heard of it by its end. */
	if (!server_drain(bench.server, 100))
		assert_true(server_drain(bench.server, PATIENCE_MS));
	assert_true(hear_end(sending));
	assert_true(hear_end(streaming));
	server_free(bench.server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_connection_serves_many_requests),
		cmocka_unit_test(who_waits_is_woken_or_told_that_it_is_over),
		cmocka_unit_test(a_client_that_leaves_while_it_waits_is_noticed),
		cmocka_unit_test(what_blocks_does_not_hold_up_others),
		cmocka_unit_test(a_stream_waits_and_ends_with_the_server),
		cmocka_unit_test(streams_that_search_hold_up_no_request),
		cmocka_unit_test(nothing_of_a_stream_is_sent_to_who_asks_for_its_head),
		cmocka_unit_test(a_stream_of_known_length_is_whole),
		cmocka_unit_test(many_streams_at_once_are_whole_too),
		cmocka_unit_test(a_body_streams_to_who_reads_it),
		cmocka_unit_test(bodies_above_those_that_have_a_thread_wait_for_one),
		cmocka_unit_test(nobody_has_more_than_half_of_the_threads_for_bodies),
		cmocka_unit_test(a_body_that_is_too_large_is_refused),
		cmocka_unit_test(a_request_that_can_be_read_in_two_ways_is_refused),
		cmocka_unit_test(who_is_slow_with_headers_or_body_is_closed),
		cmocka_unit_test(a_drain_waits_only_so_long),
		cmocka_unit_test(a_drain_cuts_clients_that_stall),
	};

	return cmocka_run_group_tests_name("api/server", tests, NULL, NULL);
}
