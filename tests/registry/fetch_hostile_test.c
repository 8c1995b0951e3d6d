/* SPDX-License-Identifier: Apache-2.0 */
/* What only a registry that means harm does; see standin.h. Each comes to an end by itself. */
#include "tests/registry/fetch_bench.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* One piece over and over, until the client has had enough. */
static void say_forever(const struct standin_request *request, struct str piece)
{
	while (send(request->fd, piece.ptr, piece.len, MSG_NOSIGNAL) > 0)
		;
}

static int bench_manifest(struct bench *bench, struct err *err)
{
	struct digest digest;

	bench->got.max = MANIFEST_MAX;
	return fetch_manifest(bench->remote, bench->http, "1.0", &bench->got, &digest, err);
}

static void document_without_end(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_say(request, "HTTP/1.1 200 OK\r\n\r\n");
	say_forever(request, STR("{\"schemaVersion\": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["));
}

static void a_manifest_without_end_is_cut_off(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, document_without_end, NULL);
	check_err(bench_manifest(bench, &err), &err, ERR_LIMIT);
	assert_int_equal(atomic_load(&bench->server.requests), 1);
}

static void token_without_end(void *ctx, const struct standin_request *request)
{
	if (strncmp(request->target, "/token", 6) == 0)
		document_without_end(ctx, request);
	else
		standin_answer(request, "401 Unauthorized",
			       "WWW-Authenticate: Bearer realm=\"/token\"\r\n", STR(""));
}

static void a_token_without_end_is_cut_off(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, token_without_end, NULL);
	check_err(bench_manifest(bench, &err), &err, ERR_LIMIT);
	assert_non_null(strstr(err.text, "token service"));
	assert_int_equal(atomic_load(&bench->server.requests), 2);
}

static void blob_without_end_in_chunks(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_say(request, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
	say_forever(request, STR("10\r\n0123456789abcdef\r\n"));
}

static void a_blob_without_end_in_chunks_is_cut_off(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, blob_without_end_in_chunks, NULL);
	check_err(bench_blob(bench, &err), &err, ERR_CORRUPT);
	assert_true(bench->got.len <= BLOB_SIZE);
	assert_int_equal(atomic_load(&bench->server.requests), 1);
}

static void refusal_without_end(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_say(request, "HTTP/1.1 404 Not Found\r\n\r\n");
	say_forever(request, STR("no such manifest, and this is why: "));
}

static void challenge_without_end(void *ctx, const struct standin_request *request)
{
	if (strncmp(request->target, "/token", 6) == 0) {
		refusal_without_end(ctx, request);
		return;
	}
	standin_say(request, "HTTP/1.1 401 Unauthorized\r\n"
			     "WWW-Authenticate: Bearer realm=\"/token\"\r\n\r\n");
	say_forever(request, STR("you are not known here. "));
}

static void redirect_without_end(void *ctx, const struct standin_request *request)
{
	const struct bench *bench = ctx;

	standin_say(request, "HTTP/1.1 307 Go\r\nLocation: http://127.0.0.1:%u/blob\r\n\r\n",
		    bench->other.port);
	say_forever(request, STR("go away, go away, go away. "));
}

static void answers_of_other_statuses_are_cut_off_too(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, refusal_without_end, NULL);
	check_err(bench_manifest(bench, &err), &err, ERR_NOT_FOUND);
	assert_int_equal(atomic_load(&bench->server.requests), 1);

	bench = bench_again(state);
	bench_open(bench, challenge_without_end, NULL);
	check_err(bench_manifest(bench, &err), &err, ERR_REMOTE);
	assert_int_equal(atomic_load(&bench->server.requests), 2);

	bench = bench_again(state);
	bench_open(bench, redirect_without_end, storage);
	check_ok(bench_blob(bench, &err), &err);
	check_whole(bench);
}

static void never_comes_to_the_point(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	say_forever(request, STR("HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n"));
}

static void informational_answers_have_the_headers_ceiling(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, never_comes_to_the_point, NULL);
	check_err(bench_manifest(bench, &err), &err, ERR_LIMIT);
	assert_int_equal(atomic_load(&bench->server.requests), 1);
}

static void brings_more_than_its_length(void *ctx, const struct standin_request *request)
{
	const struct bench *bench = ctx;

	standin_say(request, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", BLOB_SIZE);
	say_bytes(bench, request, 0, BLOB_SIZE);
	standin_say(request, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong");
}

static void what_follows_an_answer_is_no_part_of_it(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, brings_more_than_its_length, NULL);
	check_ok(bench_blob(bench, &err), &err);
	check_whole(bench);
	assert_int_equal(atomic_load(&bench->server.requests), 1);
}

static void brings_less_than_its_length(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_say(request, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n{\"schema");
}

static void a_length_that_is_never_reached_uses_up_the_tries(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, brings_less_than_its_length, NULL);
	check_err(bench_manifest(bench, &err), &err, ERR_REMOTE);
	assert_int_equal(atomic_load(&bench->server.requests), 4);

	/* of a blob, the same eight bytes are no new ones */
	bench = bench_again(state);
	bench_open(bench, brings_less_than_its_length, NULL);
	check_err(bench_blob(bench, &err), &err, ERR_REMOTE);
	assert_int_equal(atomic_load(&bench->server.requests), 4);
	assert_true(bench->got.len < 100);
}

/* The first half, and then of the second more or less than its Content-Range says. */
static void range_of_size(struct bench *bench, const struct standin_request *request, size_t end)
{
	if (request->number == 1) {
		standin_say(request, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", BLOB_SIZE);
		say_bytes(bench, request, 0, BLOB_HALF);
	} else if (request->number == 2) {
		standin_say(request, "HTTP/1.1 206 Partial Content\r\nConnection: close\r\n"
				     "Content-Range: bytes 40000-99999/100000\r\n\r\n");
		say_bytes(bench, request, BLOB_HALF, end);
		if (end == BLOB_SIZE)
			say_forever(request, STR("and more, "));
	} else {
		bench->flag = standin_asked(request, "\r\nRange: bytes=50000-99999\r\n");
		say_whole(bench, request);
	}
}

static void range_that_is_longer(void *ctx, const struct standin_request *request)
{
	range_of_size(ctx, request, BLOB_SIZE);
}

static void range_that_is_shorter(void *ctx, const struct standin_request *request)
{
	range_of_size(ctx, request, BLOB_HALF + 10000);
}

static void a_range_is_held_to_the_blobs_size(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, range_that_is_longer, NULL);
	check_err(bench_blob(bench, &err), &err, ERR_CORRUPT);
	assert_true(bench->got.len <= BLOB_SIZE);

	bench = bench_again(state);
	bench_open(bench, range_that_is_shorter, NULL);
	check_ok(bench_blob(bench, &err), &err);
	assert_true(bench->flag);
	check_whole(bench);
}

static void partial_though_nobody_asked(void *ctx, const struct standin_request *request)
{
	const struct bench *bench = ctx;

	standin_say(request, "HTTP/1.1 206 Partial Content\r\nConnection: close\r\n"
			     "Content-Range: bytes 40000-99999/100000\r\n\r\n");
	say_bytes(bench, request, BLOB_HALF, BLOB_SIZE);
}

static void a_range_that_nobody_asked_for_is_refused(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, partial_though_nobody_asked, NULL);
	check_err(bench_blob(bench, &err), &err, ERR_REMOTE);
	assert_int_equal(bench->got.len, 0);
	buf_clear(&bench->got);
	check_err(bench_manifest(bench, &err), &err, ERR_REMOTE);
}

/* Where the next redirect leads. */
static const char *const strange[] = {
	"file:///etc/passwd",  "ftp://127.0.0.1/x",       "gopher://127.0.0.1:70/x",
	"dict://127.0.0.1/x",  "ldap://127.0.0.1/x",      "unix:///run/docker.sock",
	"javascript:alert(1)", "http://me:pw@127.0.0.1/", "https://127.0.0.1:99999/",
};

static void redirects_to_strange(void *ctx, const struct standin_request *request)
{
	const struct bench *bench = ctx;
	char text[128];

	(void)snprintf(text, sizeof(text), "Location: %s\r\n", strange[bench->step]);
	standin_answer(request, "302 Found", text, STR(""));
}

static void redirects_lead_to_nothing_but_http(void **state)
{
	struct bench *bench = *state;

	for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++) {
		struct err err = {0};

		if (i > 0)
			bench = bench_again(state);
		bench->step = (int)i;
		bench_open(bench, redirects_to_strange, NULL);
		check_err(bench_blob(bench, &err), &err, ERR_REMOTE);
		assert_int_equal(bench->got.len, 0);
		assert_int_equal(atomic_load(&bench->other.requests), 0);
	}
}

/* 401, then away to the other host, and from there back to the first. */
static void sends_there_and_back(void *ctx, const struct standin_request *request)
{
	struct bench *bench = ctx;
	char text[128];

	if (strcmp(request->target, "/back") == 0) {
		bench->step++;
		storage(ctx, request);
	} else if (!strstr(request->text, "Authorization: Basic ")) {
		standin_answer(request, "401 Unauthorized", "WWW-Authenticate: Basic realm=x\r\n",
			       STR(""));
	} else {
		(void)snprintf(text, sizeof(text), "Location: http://127.0.0.1:%u/there\r\n",
			       bench->other.port);
		standin_answer(request, "307 Go", text, STR(""));
	}
}

static void sends_back(void *ctx, const struct standin_request *request)
{
	struct bench *bench = ctx;
	char text[128];

	bench->leaked = bench->leaked || strstr(request->text, "uthorization");
	(void)snprintf(text, sizeof(text), "Location: http://127.0.0.1:%u/back\r\n",
		       bench->server.port);
	standin_answer(request, "307 Go", text, STR(""));
}

static void a_password_is_shown_to_no_redirect(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_identify(bench, "me", "secret");
	bench_open(bench, sends_there_and_back, sends_back);
	check_ok(bench_blob(bench, &err), &err);
	check_whole(bench);
	assert_int_equal(bench->step, 1);
	assert_false(bench->leaked);
}

static void busy_for_ever(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_answer(request, "429 Too Many Requests", "Retry-After: 9223372036854775807\r\n",
		       STR(""));
}

static void busy_until_the_year_9999(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_answer(request, "503 Busy", "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT\r\n",
		       STR(""));
}

static void a_server_can_ask_for_patience_within_limits(void **state)
{
	static standin_fn *const ways[] = {busy_for_ever, busy_until_the_year_9999};
	struct bench *bench = *state;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		auto_http_reply struct http_reply response = {0};
		struct http_call request = {.method = HTTP_GET, .direct = true};
		struct err err = {0};
		char url[64];

		if (i > 0)
			bench = bench_again(state);
		bench_open(bench, ways[i], NULL);
		(void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/", bench->server.port);
		request.url = url;
		check_ok(http_send(bench->http, &request, &response, &err), &err);
		assert_int_equal(response.retry_after_ms, HTTP_RETRY_AFTER_MAX_MS);
	}
}

static void document_that_stalls(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_say(request, "HTTP/1.1 200 OK\r\n\r\n{\"schemaVersion\": ");
	standin_await_goodbye(request);
}

static void token_that_stalls(void *ctx, const struct standin_request *request)
{
	if (strncmp(request->target, "/token", 6) == 0)
		document_that_stalls(ctx, request);
	else
		token_without_end(ctx, request);
}

static void documents_that_stall_are_given_up(void **state)
{
	static standin_fn *const ways[] = {document_that_stalls, token_that_stalls};
	struct bench *bench = *state;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct err err = {0};

		if (i > 0)
			bench = bench_again(state);
		bench->spec.stall_ms = 100;
		bench_open(bench, ways[i], NULL);
		check_err(bench_manifest(bench, &err), &err, ERR_TIMEOUT);
	}
}

/* A byte now and then is enough against the stall; the whole has its own time. */
static void documents_have_a_deadline(void **state)
{
	static standin_fn *const ways[] = {document_that_stalls, token_that_stalls};
	struct bench *bench = *state;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct err err = {0};

		if (i > 0)
			bench = bench_again(state);
		bench->spec.document_ms = 50;
		bench->spec.tries = 1;
		bench_open(bench, ways[i], NULL);
		check_err(bench_manifest(bench, &err), &err, ERR_TIMEOUT);
		assert_non_null(strstr(err.text, "did not answer in full within 50 ms"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_manifest_without_end_is_cut_off),
		TEST(a_token_without_end_is_cut_off),
		TEST(a_blob_without_end_in_chunks_is_cut_off),
		TEST(answers_of_other_statuses_are_cut_off_too),
		TEST(informational_answers_have_the_headers_ceiling),
		TEST(what_follows_an_answer_is_no_part_of_it),
		TEST(a_length_that_is_never_reached_uses_up_the_tries),
		TEST(a_range_is_held_to_the_blobs_size),
		TEST(a_range_that_nobody_asked_for_is_refused),
		TEST(redirects_lead_to_nothing_but_http),
		TEST(a_password_is_shown_to_no_redirect),
		TEST(a_server_can_ask_for_patience_within_limits),
		TEST(documents_that_stall_are_given_up),
		TEST(documents_have_a_deadline),
	};

	return cmocka_run_group_tests_name("registry/fetch_hostile", tests, NULL, NULL);
}
