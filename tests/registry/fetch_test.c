/* SPDX-License-Identifier: Apache-2.0 */
/* What a registry should not do to a blob, done by a stand-in: see standin.h. */
#include "layers/base/clock.h"
#include "registry/retry_priv.h"
#include "tests/registry/fetch_bench.h"

#include <stdio.h>
#include <string.h>

#define CANCELS 4

static void breaks_then_continues(void *ctx, const struct standin_request *request)
{
	struct bench *bench = ctx;

	if (request->number == 1) {
		standin_say(request, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", BLOB_SIZE);
		say_bytes(bench, request, 0, BLOB_HALF);
		return;
	}
	bench->flag = standin_asked(request, "\r\nRange: bytes=40000-99999\r\n");
	standin_say(request,
		    "HTTP/1.1 206 Partial Content\r\nConnection: close\r\n"
		    "Content-Range: bytes 40000-99999/100000\r\nContent-Length: %zu\r\n\r\n",
		    BLOB_SIZE - BLOB_HALF);
	say_bytes(bench, request, BLOB_HALF, BLOB_SIZE);
}

static void a_broken_stream_is_continued_by_a_closed_range(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, breaks_then_continues, NULL);
	check_ok(bench_blob(bench, &err), &err);
	assert_true(bench->flag);
	assert_int_equal(atomic_load(&bench->server.requests), 2);
	check_whole(bench);
}

/* A blob that was cut once, and then this answer to its range, and then the whole. */
static void breaks_then_answers(struct bench *bench, const struct standin_request *request,
				const char *answer)
{
	if (request->number == 1) {
		standin_say(request, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", BLOB_SIZE);
		say_bytes(bench, request, 0, BLOB_HALF);
	} else if (answer && request->number == 2) {
		standin_say(request, "%s", answer);
	} else {
		say_whole(bench, request);
	}
}

static void breaks_then_ignores_range(void *ctx, const struct standin_request *request)
{
	breaks_then_answers(ctx, request, NULL);
}

static void a_range_that_is_ignored_is_skipped(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, breaks_then_ignores_range, NULL);
	check_ok(bench_blob(bench, &err), &err);
	check_whole(bench);
}

static void breaks_then_416(void *ctx, const struct standin_request *request)
{
	breaks_then_answers(ctx, request,
			    "HTTP/1.1 416 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
}

static void breaks_then_wrong_range(void *ctx, const struct standin_request *request)
{
	breaks_then_answers(ctx, request,
			    "HTTP/1.1 206 Partial\r\nConnection: close\r\nContent-Length: 5\r\n"
			    "Content-Range: bytes 0-4/100000\r\n\r\nhello");
}

static void breaks_then_no_content_range(void *ctx, const struct standin_request *request)
{
	breaks_then_answers(ctx, request,
			    "HTTP/1.1 206 Partial\r\nConnection: close\r\nContent-Length: 5\r\n"
			    "\r\nhello");
}

static void a_range_that_cannot_be_had_is_got_whole(void **state)
{
	static standin_fn *const ways[] = {breaks_then_416, breaks_then_wrong_range,
					   breaks_then_no_content_range};
	struct bench *bench = *state;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct err err = {0};

		if (i > 0)
			bench = bench_again(state);
		bench_open(bench, ways[i], NULL);
		check_ok(bench_blob(bench, &err), &err);
		assert_int_equal(atomic_load(&bench->server.requests), 3);
		check_whole(bench);
	}
}

static void a_connection_that_closes_is_tried_again(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, closes_at_once_twice, NULL);
	check_ok(bench_blob(bench, &err), &err);
	check_whole(bench);
}

static void busy_once(void *ctx, const struct standin_request *request)
{
	if (request->number == 1)
		standin_answer(request, "429 Too Many Requests", "Retry-After: 1\r\n",
			       STR("Too Many Requests (HAP429)."));
	else
		say_whole(ctx, request);
}

static void retry_after_is_kept(void **state)
{
	struct bench *bench = *state;
	int64_t before = clock_monotonic_ms();
	struct err err = {0};

	bench_open(bench, busy_once, NULL);
	check_ok(bench_blob(bench, &err), &err);
	assert_true(clock_monotonic_ms() - before >= 1000);
	check_whole(bench);
}

static void tries_come_to_an_end(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, always_503, NULL);
	check_err(bench_blob(bench, &err), &err, ERR_REMOTE);
	assert_non_null(strstr(err.text, "503"));
	assert_null(strstr(err.text, "html"));
	assert_int_equal(atomic_load(&bench->server.requests), 4);
}

static void busy_always(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_answer(request, "429 Too Many Requests", "", STR("Too Many Requests (HAP429)."));
}

static void a_registry_that_stays_busy_is_for_later(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, busy_always, NULL);
	check_err(bench_blob(bench, &err), &err, ERR_BUSY);
	assert_string_equal(err.text, "too many requests; try later, or with credentials");
	assert_int_equal(atomic_load(&bench->server.requests), 4);
}

static void of_another_size(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_answer(request, "200 OK", "", STR(""));
}

static void shorter(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_answer(request, "200 OK", "", STR("short"));
}

static void a_blob_of_another_size_is_corrupt(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, shorter, NULL);
	check_err(bench_blob(bench, &err), &err, ERR_CORRUPT);
	assert_non_null(strstr(err.text, "blob of 5 bytes, the manifest says 100000"));
	assert_int_equal(atomic_load(&bench->server.requests), 1);
	assert_int_equal(bench->got.len, 0);
}

static void an_empty_answer_is_no_blob(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, of_another_size, NULL);
	check_err(bench_blob(bench, &err), &err, ERR_REMOTE);
}

static void a_blob_without_end_is_cut_off(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, longer_without_a_length, NULL);
	check_err(bench_blob(bench, &err), &err, ERR_CORRUPT);
	assert_true(bench->got.len <= BLOB_SIZE);
}

static void claims_an_encoding(void *ctx, const struct standin_request *request)
{
	struct bench *bench = ctx;

	bench->flag = standin_asked(request, "\r\nAccept-Encoding: identity\r\n");
	standin_say(request,
		    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Encoding: gzip\r\n"
		    "Content-Length: %zu\r\n\r\n",
		    BLOB_SIZE);
	say_bytes(bench, request, 0, BLOB_SIZE);
}

static void bytes_are_taken_as_they_come(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, claims_an_encoding, NULL);
	check_ok(bench_blob(bench, &err), &err);
	assert_true(bench->flag);
	check_whole(bench);
}

static void says_nothing(void *ctx, const struct standin_request *request)
{
	struct bench *bench = ctx;

	if (bench->flag)
		cancel_raise(&bench->cancel);
	standin_await_goodbye(request);
}

static void a_silent_server_is_given_up(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench->spec.stall_ms = 100;
	bench_open(bench, says_nothing, NULL);
	check_err(bench_blob(bench, &err), &err, ERR_TIMEOUT);
	standin_stop(&bench->server);
	assert_int_equal(atomic_load(&bench->server.clients), RETRY_TIMEOUTS);
}

static void is_silent_once(void *ctx, const struct standin_request *request)
{
	if (request->number == 1)
		standin_await_goodbye(request);
	else
		say_whole(ctx, request);
}

static void after_one_silence_there_is_another_try(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench->spec.stall_ms = 1000; /* the second try has to be done in time */
	bench_open(bench, is_silent_once, NULL);
	check_ok(bench_blob(bench, &err), &err);
	check_whole(bench);
}

static void drips(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_say(request, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nfew bytes");
	standin_await_goodbye(request);
}

static void a_body_that_stalls_is_given_up(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench->spec.stall_ms = 100;
	bench->spec.tries = 1;
	bench_open(bench, drips, NULL);
	check_err(bench_blob(bench, &err), &err, ERR_TIMEOUT);
}

/* What looks at its cancel once a second only needs one each time. */
static void a_cancel_ends_a_wait_at_once(void **state)
{
	struct bench *bench = *state;
	int64_t before = clock_monotonic_ms();

	for (int i = 0; i < CANCELS; i++) {
		struct err err = {0};

		if (i > 0)
			bench = bench_again(state);
		bench->flag = true;
		bench_open(bench, says_nothing, NULL);
		check_err(bench_blob(bench, &err), &err, ERR_CANCELLED);
		assert_int_equal(atomic_load(&bench->server.requests), 1);
	}
	assert_true(clock_monotonic_ms() - before < (CANCELS - 1) * INT64_C(1000));
}

static void floods_headers(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_say(request, "HTTP/1.1 200 OK\r\n");
	for (int i = 0; i < 2000; i++)
		standin_say(request, "X-%d: %0100d\r\n", i, i);
	standin_say(request, "Content-Length: 0\r\n\r\n");
}

static void headers_have_a_ceiling(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, floods_headers, NULL);
	check_err(bench_blob(bench, &err), &err, ERR_LIMIT);
	assert_int_equal(atomic_load(&bench->server.requests), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_broken_stream_is_continued_by_a_closed_range),
		TEST(a_range_that_is_ignored_is_skipped),
		TEST(a_range_that_cannot_be_had_is_got_whole),
		TEST(a_connection_that_closes_is_tried_again),
		TEST(retry_after_is_kept),
		TEST(tries_come_to_an_end),
		TEST(a_registry_that_stays_busy_is_for_later),
		TEST(a_blob_of_another_size_is_corrupt),
		TEST(an_empty_answer_is_no_blob),
		TEST(a_blob_without_end_is_cut_off),
		TEST(bytes_are_taken_as_they_come),
		TEST(a_silent_server_is_given_up),
		TEST(after_one_silence_there_is_another_try),
		TEST(a_body_that_stalls_is_given_up),
		TEST(a_cancel_ends_a_wait_at_once),
		TEST(headers_have_a_ceiling),
	};

	return cmocka_run_group_tests_name("registry/fetch", tests, NULL, NULL);
}
