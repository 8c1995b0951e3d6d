/* SPDX-License-Identifier: Apache-2.0 */
/* A blob of which its upstream does not say how long it is. */
#include "tests/registry/mirror_bench.h"

#include <sched.h>
#include <sys/socket.h>

#define HALF (BENCH_BLOB_SIZE / 2)

/* A blob in chunks, whose second half comes when the test says so, or breaks off first. */
static void comes_in_chunks(void *ctx, const struct standin_request *request)
{
	struct mirror_bench *bench = ctx;

	if (!strstr(request->target, "/blobs/")) {
		upstream_serves(bench, request);
		return;
	}
	atomic_fetch_add(&bench->blobs, 1);
	standin_say(request,
		    "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
		    "%zx\r\n",
		    HALF);
	(void)send(request->fd, bench->blob, HALF, MSG_NOSIGNAL);
	while (atomic_load(&bench->step) == 0)
		(void)sched_yield();
	if (atomic_load(&bench->step) == 2 && atomic_load(&bench->blobs) == 1)
		return;
	standin_say(request, "\r\n%zx\r\n", BENCH_BLOB_SIZE - HALF);
	(void)send(request->fd, bench->blob + HALF, BENCH_BLOB_SIZE - HALF, MSG_NOSIGNAL);
	standin_say(request, "\r\n0\r\n\r\n");
}

/* Read some of what is on its way, and say how much of it is there at least. */
static void check_has_begun(struct mirror_bench *bench, struct http_response *response, size_t want)
{
	char path[512];
	const struct mirror_want ask = {.method = HTTP_GET,
					.path = mirror_bench_path("blobs", bench->blob_name, path),
					.response = response};
	struct mirror_got got;
	size_t len = 0;

	mirror_bench_ask(bench, &ask, &got);
	assert_int_equal(got.status, 200);
	while (len < want) {
		struct http_wait wait = {0};
		char bytes[4096];
		ssize_t n = response->stream->read(response->stream, len, bytes, sizeof(bytes),
						   false, &wait);

		assert_true(n >= 0);
		assert_memory_equal(bytes, bench->blob + len, (size_t)n);
		len += (size_t)n;
		(void)sched_yield();
	}
	mirror_got_done(&got);
}

static void what_has_no_length_streams_in_chunks(void **state)
{
	struct mirror_bench *bench = *state;
	auto_http_response struct http_response first = HTTP_RESPONSE_INIT;
	auto_http_response struct http_response second = HTTP_RESPONSE_INIT;
	struct mirror_got got;

	mirror_bench_open(bench, comes_in_chunks, NULL);
	/* The second half has not been sent yet. */
	check_has_begun(bench, &first, HALF - 66000);
	check_has_begun(bench, &second, HALF - 66000);
	assert_true(first.stream_bytes == HTTP_BYTES_UNKNOWN);
	http_response_clear(&first); /* who asked first goes away */
	atomic_store(&bench->step, 1);
	mirror_bench_ask_blob(bench, HTTP_GET, NULL, &got);
	check_is_blob(bench, &got);
	mirror_got_done(&got);
	check_gets_blob(bench);
	assert_int_equal(atomic_load(&bench->server.requests), 1);
}

static void its_manifest_says_how_long_it_is(void **state)
{
	struct mirror_bench *bench = *state;
	struct mirror_got got;

	mirror_bench_open(bench, comes_in_chunks, NULL);
	assert_int_equal(mirror_bench_status(bench, BENCH_TAG), 200);
	mirror_bench_ask_blob(bench, HTTP_GET, "bytes=1000-9999", &got);
	assert_int_equal(got.status, 206);
	assert_int_equal(got.len, 9000);
	assert_memory_equal(got.body, bench->blob + 1000, got.len);
	mirror_got_done(&got);
	atomic_store(&bench->step, 1);
	mirror_bench_ask_blob(bench, HTTP_GET, NULL, &got);
	assert_false(got.endless);
	check_is_blob(bench, &got);
	mirror_got_done(&got);
	assert_int_equal(atomic_load(&bench->blobs), 1);
}

static void head_has_no_length(void *ctx, const struct standin_request *request)
{
	if (upstream_is_for(request, "HEAD", "/blobs/"))
		standin_say(request, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
	else
		upstream_serves(ctx, request);
}

static void nor_is_it_got_for_a_head(void **state)
{
	struct mirror_bench *bench = *state;
	struct mirror_got got;

	mirror_bench_open(bench, head_has_no_length, NULL);
	assert_int_equal(mirror_bench_status(bench, BENCH_TAG), 200);
	mirror_bench_ask_blob(bench, HTTP_HEAD, NULL, &got);
	assert_int_equal(got.status, 200);
	assert_int_equal(got.len, BENCH_BLOB_SIZE);
	mirror_got_done(&got);
	assert_int_equal(atomic_load(&bench->blobs), 0);
}

static void who_asks_for_a_part_of_what_has_no_length_waits(void **state)
{
	struct mirror_bench *bench = *state;
	auto_http_response struct http_response first = HTTP_RESPONSE_INIT;
	char path[512];
	struct mirror_want want = {.method = HTTP_GET, .range = "bytes=0-9", .impatient = true};
	struct mirror_got got;

	mirror_bench_open(bench, comes_in_chunks, NULL);
	check_has_begun(bench, &first, 1);
	want.path = mirror_bench_path("blobs", bench->blob_name, path);
	mirror_bench_ask(bench, &want, &got);
	assert_int_equal(got.status, 503);
	mirror_got_done(&got);
	atomic_store(&bench->step, 1);
	mirror_bench_ask_blob(bench, HTTP_GET, "bytes=0-9", &got);
	assert_int_equal(got.status, 206);
	assert_int_equal(got.len, 10);
	mirror_got_done(&got);
}

static void chunks_that_break_off_are_got_anew(void **state)
{
	struct mirror_bench *bench = *state;

	atomic_store(&bench->step, 2);
	mirror_bench_open(bench, comes_in_chunks, NULL);
	check_gets_blob(bench);
	assert_int_equal(atomic_load(&bench->blobs), 2);
}

static void wrong_bytes_in_chunks(void *ctx, const struct standin_request *request)
{
	struct mirror_bench *bench = ctx;
	const char right = bench->blob[BENCH_BLOB_SIZE - 1];

	if (!atomic_load(&bench->flag))
		bench->blob[BENCH_BLOB_SIZE - 1] = (char)~right;
	comes_in_chunks(bench, request);
	bench->blob[BENCH_BLOB_SIZE - 1] = right;
}

static void what_has_no_length_is_checked_before_its_end_is_sent(void **state)
{
	struct mirror_bench *bench = *state;
	struct mirror_got got;

	atomic_store(&bench->step, 1);
	mirror_bench_open(bench, wrong_bytes_in_chunks, NULL);
	mirror_bench_ask_blob(bench, HTTP_GET, NULL, &got);
	assert_true(got.status != 200 || (got.cut && got.len < BENCH_BLOB_SIZE - 60000));
	mirror_got_done(&got);
	check_blob_is_not_kept(bench);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(what_has_no_length_streams_in_chunks),
		TEST(its_manifest_says_how_long_it_is),
		TEST(nor_is_it_got_for_a_head),
		TEST(who_asks_for_a_part_of_what_has_no_length_waits),
		TEST(chunks_that_break_off_are_got_anew),
		TEST(what_has_no_length_is_checked_before_its_end_is_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
