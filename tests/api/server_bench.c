/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/api/server_bench.h"

#include "layers/base/clock.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>

static void bench_count(struct server_bench *bench, unsigned *counter)
{
	lock_take(&bench->lock);
	(*counter)++;
	(void)pthread_cond_broadcast(&bench->changed);
	lock_drop(&bench->lock);
}

void server_bench_await(struct server_bench *bench, const unsigned *counter, unsigned wanted)
{
	struct timespec until;
	int late = 0;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += SERVER_BENCH_PATIENCE_S;
	lock_take(&bench->lock);
	while (*counter < wanted && late == 0)
		late = pthread_cond_timedwait(&bench->changed, &bench->lock.os, &until);
	lock_drop(&bench->lock);
	assert_int_equal(late, 0);
}

void server_bench_await_requests(const struct server_bench *bench, size_t wanted)
{
	while (server_load(bench->server).requests < wanted)
		(void)poll(NULL, 0, 1);
}

void server_bench_release(struct server_bench *bench)
{
	lock_take(&bench->lock);
	bench->released = true;
	(void)pthread_cond_broadcast(&bench->changed);
	lock_drop(&bench->lock);
}

static void bench_await_release(struct server_bench *bench)
{
	bench_count(bench, &bench->asked);
	lock_take(&bench->lock);
	while (!bench->released)
		(void)pthread_cond_wait(&bench->changed, &bench->lock.os);
	lock_drop(&bench->lock);
}

/* A stream that says a word for each change of its topic. */
struct words {
	struct http_stream stream;
	struct server_bench *bench;
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

static struct http_stream *words_new(struct server_bench *bench)
{
	struct words *words = calloc(1, sizeof(*words));

	assert_non_null(words);
	*words = (struct words){{words_read, words_close}, bench, false};
	return &words->stream;
}

/* A stream that looks for what it says until it is released, and finds nothing. */
struct search {
	struct http_stream stream;
	struct server_bench *bench;
};

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

static struct http_stream *search_new(struct server_bench *bench)
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
	terms->body_max = SERVER_BENCH_BODY_MAX;
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

static void answer_wait(struct server_bench *bench, struct http_request *request,
			struct http_response *out)
{
	(void)bench;
	if (request->waited)
		http_set_body(out, "text/plain", request->over ? STR("over") : STR("woken"));
	else
		out->wait = (struct http_wait){http_topic(STR("wait")),
					       clock_monotonic_ms() + SERVER_BENCH_PATIENCE_MS};
}

static void answer_due(struct server_bench *bench, struct http_request *request,
		       struct http_response *out)
{
	(void)bench;
	if (request->over)
		http_set_body(out, "text/plain", request->path);
	else
		out->wait = (struct http_wait){1, clock_monotonic_ms() + 20};
}

static void answer_slow(struct server_bench *bench, struct http_request *request,
			struct http_response *out)
{
	(void)request;
	bench_await_release(bench);
	http_set_body(out, "text/plain", STR("slow"));
}

static void answer_upload(struct server_bench *bench, struct http_request *request,
			  struct http_response *out)
{
	char text[64];
	struct str piece;
	uint64_t total = 0;
	uint64_t wrong = 0;
	struct err err = {0};
	int got;

	(void)bench;
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

static void answer_held(struct server_bench *bench, struct http_request *request,
			struct http_response *out)
{
	bench_await_release(bench);
	answer_upload(bench, request, out);
}

static void answer_words(struct server_bench *bench, struct http_request *request,
			 struct http_response *out)
{
	(void)request;
	out->stream = words_new(bench);
}

static void answer_search(struct server_bench *bench, struct http_request *request,
			  struct http_response *out)
{
	(void)request;
	out->stream = search_new(bench);
}

static void answer_big(struct server_bench *bench, struct http_request *request,
		       struct http_response *out)
{
	static struct http_stream big = {big_read, big_close, NULL};
	static struct http_stream near = {big_read, big_close, near_read};

	(void)bench;
	out->stream = str_equal(request->path, STR("/near")) ? &near : &big;
	out->stream_bytes = SERVER_BENCH_BIG_BYTES;
}

static void answer_query(struct server_bench *bench, struct http_request *request,
			 struct http_response *out)
{
	auto_buf struct buf text = BUF_INIT(1024);
	struct err err = {0};

	(void)bench;
	for (size_t i = 0; i < request->query_count; i++)
		check_ok(buf_addf(&text, &err, "[" STR_FMT "][" STR_FMT "]",
				  STR_ARG(request->query[i].name),
				  STR_ARG(request->query[i].value)),
			 &err);
	http_set_body(out, "text/plain", buf_str(&text));
}

static void answer_other(struct server_bench *bench, struct http_request *request,
			 struct http_response *out)
{
	(void)bench;
	http_set_body(out, "text/plain", request->body.len > 0 ? request->body : request->path);
}

struct bench_path {
	struct str path;
	void (*answer)(struct server_bench *bench, struct http_request *request,
		       struct http_response *out);
	bool counts; /* itself, where it blocks or waits */
};

static const struct bench_path bench_paths[] = {
	{STR("/wait"), answer_wait, false},    {STR("/due"), answer_due, false},
	{STR("/slow"), answer_slow, true},     {STR("/upload"), answer_upload, false},
	{STR("/held"), answer_held, true},     {STR("/words"), answer_words, true},
	{STR("/search"), answer_search, true}, {STR("/big"), answer_big, false},
	{STR("/near"), answer_big, false},     {STR("/query"), answer_query, false},
};
#define BENCH_PATHS (sizeof(bench_paths) / sizeof(bench_paths[0]))

static void answer(struct http_handler *handler, struct http_request *request,
		   struct http_response *out)
{
	struct server_bench *bench = container_of(handler, struct server_bench, handler);
	struct bench_path path = {.answer = answer_other};

	for (size_t i = 0; i < BENCH_PATHS; i++) {
		if (str_equal(request->path, bench_paths[i].path))
			path = bench_paths[i];
	}
	path.answer(bench, request, out);
	if (!path.counts)
		bench_count(bench, &bench->asked);
}

static void done(struct http_handler *handler, struct http_request *request,
		 const struct http_response *out)
{
	struct server_bench *bench = container_of(handler, struct server_bench, handler);

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

void server_bench_open(struct server_bench *bench, const struct server_options *given)
{
	struct server_options options = *given;
	struct server_listener listener = {.threads = 2};
	struct err err = {0};

	*bench = (struct server_bench){.handler = {admit, answer, done, refuse}, .lock = LOCK_INIT};
	(void)pthread_cond_init(&bench->changed, NULL);
	options.handler = &bench->handler;
	check_ok(server_new(&options, &bench->server, &err), &err);
	listener.fd = listen_tcp("127.0.0.1:0", bench->url, &err);
	check_ok(listener.fd, &err);
	check_ok(server_listen(bench->server, &listener, &err), &err);
}

void server_bench_close(struct server_bench *bench)
{
	assert_true(server_drain(bench->server, SERVER_BENCH_PATIENCE_MS));
	server_free(bench->server);
}

int client_dial(const struct server_bench *bench)
{
	return client_dial_from(bench, 1);
}

int client_dial_from(const struct server_bench *bench, unsigned char last)
{
	const struct sockaddr_in from = {.sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1U + last)};
	struct timeval patience = {.tv_sec = SERVER_BENCH_PATIENCE_S};
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct str port = str_of(strchr(bench->url, ':') + 1);
	uint64_t number = 0;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(str_take_number(&port, &number));
	to.sin_port = htons((uint16_t)number);
	assert_int_equal(bind(fd, (const struct sockaddr *)&from, sizeof(from)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
	return fd;
}

void client_say_bytes(int fd, struct str bytes)
{
	assert_int_equal(send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL), (ssize_t)bytes.len);
}

void client_say(int fd, const char *text)
{
	client_say_bytes(fd, str_of(text));
}

void client_get(int fd, const char *path)
{
	char text[256];

	(void)snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
	client_say(fd, text);
}

bool client_hear(int fd, const char *text)
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

bool client_hear_end(int fd)
{
	char rest[4096];
	ssize_t n;

	while ((n = recv(fd, rest, sizeof(rest), 0)) > 0)
		;
	return n == 0 || errno == ECONNRESET;
}

void client_upload(int fd, const char *more, size_t announced, size_t sent)
{
	static char piece[26 * 1024];
	char text[256];

	(void)snprintf(text, sizeof(text),
		       "POST /upload HTTP/1.1\r\nHost: x\r\n%sContent-Length: %zu\r\n\r\n", more,
		       announced);
	client_say(fd, text);
	for (size_t i = 0; i < sizeof(piece); i++)
		piece[i] = (char)('a' + i % 26);
	while (sent > 0) {
		size_t n = sent < sizeof(piece) ? sent : sizeof(piece);

		assert_int_equal(send(fd, piece, n, MSG_NOSIGNAL), (ssize_t)n);
		sent -= n;
	}
}
