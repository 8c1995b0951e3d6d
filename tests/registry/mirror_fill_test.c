/* SPDX-License-Identifier: Apache-2.0 */
/* A blob on its way: to all who ask, whole or not at all. */
#include "tests/registry/mirror_bench.h"

#include <sched.h>

#include <pthread.h>
#include <sys/socket.h>

#define ASKERS 64
#define HALF (BENCH_BLOB_SIZE / 2)

static void say_half(const struct mirror_bench *bench, const struct standin_request *request)
{
	standin_say(request, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", BENCH_BLOB_SIZE);
	(void)send(request->fd, bench->blob, HALF, MSG_NOSIGNAL);
}

/* Many askers */

struct asker {
	struct mirror_bench *bench;
	struct mirror_got got;
	pthread_t thread;
};

static void *run_asker(void *ctx)
{
	struct asker *asker = ctx;

	mirror_bench_ask_blob(asker->bench, HTTP_GET, NULL, &asker->got);
	return NULL;
}

static void many_askers_are_one_request(void **state)
{
	struct mirror_bench *bench = *state;
	struct asker askers[ASKERS];

	mirror_bench_open(bench, upstream_serves, NULL);
	for (size_t i = 0; i < ASKERS; i++) {
		askers[i].bench = bench;
		assert_int_equal(pthread_create(&askers[i].thread, NULL, run_asker, &askers[i]), 0);
	}
	for (size_t i = 0; i < ASKERS; i++) {
		assert_int_equal(pthread_join(askers[i].thread, NULL), 0);
		check_is_blob(bench, &askers[i].got);
		mirror_got_done(&askers[i].got);
	}
	assert_int_equal(atomic_load(&bench->server.requests), 1);
}

/* The second half comes once the client was given some of the first. */
static void waits_for_a_reader(void *ctx, const struct standin_request *request)
{
	struct mirror_bench *bench = ctx;

	atomic_fetch_add(&bench->blobs, 1);
	say_half(bench, request);
	while (!atomic_load(&bench->flag))
		(void)sched_yield();
	(void)send(request->fd, bench->blob + HALF, BENCH_BLOB_SIZE - HALF, MSG_NOSIGNAL);
}

static void it_streams_while_it_arrives(void **state)
{
	struct mirror_bench *bench = *state;
	struct mirror_got got;

	mirror_bench_open(bench, waits_for_a_reader, NULL);
	/* This part is there whole before the rest comes. */
	mirror_bench_ask_blob(bench, HTTP_GET, "bytes=1000-99999", &got);
	assert_int_equal(got.status, 206);
	assert_int_equal(got.len, 99000);
	assert_memory_equal(got.body, bench->blob + 1000, got.len);
	assert_non_null(strstr(got.headers, "Content-Range: bytes 1000-99999/300000\n"));
	mirror_got_done(&got);
	/* So is how long it is. */
	mirror_bench_ask_blob(bench, HTTP_HEAD, NULL, &got);
	assert_int_equal(got.status, 200);
	assert_int_equal(got.len, BENCH_BLOB_SIZE);
	mirror_got_done(&got);
	mirror_bench_ask_blob(bench, HTTP_GET, "bytes=300000-", &got);
	assert_int_equal(got.status, 416);
	mirror_got_done(&got);
	/* Nobody held it up who had asked first. */
	atomic_store(&bench->flag, true);
	check_gets_blob(bench);
	assert_int_equal(atomic_load(&bench->blobs), 1);
	assert_int_equal(atomic_load(&bench->server.requests), 1);
}

/* Faults */

static void cuts_each_at_its_half(void *ctx, const struct standin_request *request)
{
	struct mirror_bench *bench = ctx;

	if (request->number == 1)
		say_half(bench, request);
	else
		upstream_serves(bench, request);
	if (request->number == 2)
		atomic_store(&bench->flag,
			     standin_asked(request, "\r\nRange: bytes=150000-299999\r\n"));
}

static void a_blob_that_is_cut_goes_on_where_it_was(void **state)
{
	struct mirror_bench *bench = *state;

	mirror_bench_open(bench, cuts_each_at_its_half, NULL);
	check_gets_blob(bench);
	assert_true(atomic_load(&bench->flag));
	assert_int_equal(atomic_load(&bench->server.requests), 2);
	check_gets_blob(bench);
	assert_int_equal(atomic_load(&bench->server.requests), 2);
}

static void stops_in_the_middle(void *ctx, const struct standin_request *request)
{
	struct mirror_bench *bench = ctx;

	if (request->number > 1) {
		upstream_serves(bench, request);
		return;
	}
	say_half(bench, request);
	standin_await_goodbye(request);
}

static void a_blob_that_stops_goes_on_by_another_connection(void **state)
{
	struct mirror_bench *bench = *state;

	bench->options.stall_ms = 500;
	mirror_bench_open(bench, stops_in_the_middle, NULL);
	check_gets_blob(bench);
	assert_int_equal(atomic_load(&bench->blobs), 1);
}

static void then_ignores_the_range(void *ctx, const struct standin_request *request)
{
	struct mirror_bench *bench = ctx;

	say_half(bench, request);
	if (request->number > 1)
		(void)send(request->fd, bench->blob + HALF, BENCH_BLOB_SIZE - HALF, MSG_NOSIGNAL);
}

static void a_range_that_is_ignored_is_skipped(void **state)
{
	struct mirror_bench *bench = *state;

	mirror_bench_open(bench, then_ignores_the_range, NULL);
	check_gets_blob(bench);
	assert_int_equal(atomic_load(&bench->server.requests), 2);
}

static void then_knows_no_range(void *ctx, const struct standin_request *request)
{
	struct mirror_bench *bench = ctx;

	if (request->number == 2)
		standin_answer(request, "416 Range Not Satisfiable", "", STR(""));
	else
		then_ignores_the_range(bench, request);
}

static void a_range_that_is_refused_is_got_whole(void **state)
{
	struct mirror_bench *bench = *state;

	mirror_bench_open(bench, then_knows_no_range, NULL);
	check_gets_blob(bench);
	assert_int_equal(atomic_load(&bench->server.requests), 3);
}

/* Whatever is asked for, its answer starts elsewhere. */
static void then_starts_elsewhere(void *ctx, const struct standin_request *request)
{
	struct mirror_bench *bench = ctx;

	if (request->number != 2) {
		then_ignores_the_range(bench, request);
		return;
	}
	standin_say(request,
		    "HTTP/1.1 206 Partial Content\r\nConnection: close\r\n"
		    "Content-Range: bytes 0-%zu/%zu\r\nContent-Length: %zu\r\n\r\n",
		    HALF - 1, BENCH_BLOB_SIZE, HALF);
	(void)send(request->fd, bench->blob, HALF, MSG_NOSIGNAL);
}

static void a_range_that_starts_elsewhere_is_not_taken(void **state)
{
	struct mirror_bench *bench = *state;

	mirror_bench_open(bench, then_starts_elsewhere, NULL);
	check_gets_blob(bench);
	assert_int_equal(atomic_load(&bench->server.requests), 3);
}

static void closes_at_once_twice(void *ctx, const struct standin_request *request)
{
	if (request->number > 2)
		upstream_serves(ctx, request);
}

static void a_connection_that_breaks_is_made_anew(void **state)
{
	struct mirror_bench *bench = *state;

	mirror_bench_open(bench, closes_at_once_twice, NULL);
	check_gets_blob(bench);
}

static void flips_a_byte(void *ctx, const struct standin_request *request)
{
	struct mirror_bench *bench = ctx;

	const char right = bench->blob[HALF];

	if (!atomic_load(&bench->flag))
		bench->blob[HALF] = (char)~right;
	upstream_serves(bench, request);
	bench->blob[HALF] = right;
}

static void wrong_bytes_are_cut_off_and_not_kept(void **state)
{
	struct mirror_bench *bench = *state;
	struct mirror_report report;
	struct mirror_got got;

	mirror_bench_open(bench, flips_a_byte, NULL);
	mirror_bench_ask_blob(bench, HTTP_GET, NULL, &got);
	/* Its end is held back, so nobody takes it for whole. */
	assert_true(got.status != 200 || (got.cut && got.len < BENCH_BLOB_SIZE));
	mirror_got_done(&got);
	assert_true(mirror_report(bench->mirror, 0, &report));
	assert_int_equal(report.errors, 1);
	check_blob_is_not_kept(bench);
}

/* A whole answer, as the server sees it, of less than the blob. */
static void is_shorter(void *ctx, const struct standin_request *request)
{
	struct mirror_bench *bench = ctx;

	if (atomic_load(&bench->flag)) {
		upstream_serves(bench, request);
		return;
	}
	standin_answer(request, "200 OK", "", STR("short"));
}

static void a_shorter_blob_is_not_kept(void **state)
{
	struct mirror_bench *bench = *state;
	struct mirror_got got;

	mirror_bench_open(bench, is_shorter, NULL);
	mirror_bench_ask_blob(bench, HTTP_GET, NULL, &got);
	assert_true(got.status == 502 || (got.cut && got.len == 0));
	mirror_got_done(&got);
	check_blob_is_not_kept(bench);
}

static void says_no_length(void *ctx, const struct standin_request *request)
{
	struct mirror_bench *bench = ctx;

	standin_say(request, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
	if (strcmp(request->method, "HEAD") != 0)
		(void)send(request->fd, bench->blob, BENCH_BLOB_SIZE, MSG_NOSIGNAL);
}

static void a_blob_without_a_length_comes_whole(void **state)
{
	struct mirror_bench *bench = *state;
	struct mirror_got got;

	mirror_bench_open(bench, says_no_length, NULL);
	mirror_bench_ask_blob(bench, HTTP_GET, "bytes=0-9", &got);
	assert_int_equal(got.status, 200 + 6 * (got.len == 10));
	mirror_got_done(&got);
	check_gets_blob(bench);
	assert_int_equal(atomic_load(&bench->server.requests), 1);
}

/* No disk has room for that; nothing else of the answer matters. */
static void says_too_much(void *ctx, const struct standin_request *request)
{
	const struct mirror_bench *bench = ctx;

	standin_say(request, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %llu\r\n\r\n",
		    1ULL << 37);
	if (strcmp(request->method, "HEAD") != 0)
		(void)send(request->fd, bench->blob, BENCH_BLOB_SIZE, MSG_NOSIGNAL);
}

static int makes_no_room(void *ctx, struct err *err)
{
	struct mirror_bench *bench = ctx;

	(void)err;
	atomic_fetch_add(&bench->step, 1);
	return atomic_load(&bench->flag);
}

/* Room is made once; then the upstream is asked once more if some was, or not. */
static void check_is_not_begun(struct mirror_bench *bench, bool some)
{
	char path[512];
	auto_http_response struct http_response response = HTTP_RESPONSE_INIT;
	const struct mirror_want want = {.method = HTTP_GET, .path = path, .response = &response};
	struct http_wait wait = {0};
	struct vacancy vacancy;
	struct mirror_got got;
	struct err err = {0};
	char byte[1];
	ssize_t n = 0;

	atomic_store(&bench->flag, some);
	mirror_bench_open(bench, says_too_much, NULL);
	vacancy_init(&vacancy, bench->options.store, makes_no_room, bench);
	if (vacancy_look(&vacancy, 1ULL << 38, &err) == 0)
		skip(); /* this one has */
	bench->options.vacancy = &vacancy;
	mirror_bench_reopen(bench);
	(void)mirror_bench_path("blobs", bench->blob_name, path);
	mirror_bench_ask(bench, &want, &got);
	assert_true(got.status == 507 || got.status == 200);
	mirror_got_done(&got);
	/* Who was told its length already gets nothing of it. */
	while (response.stream && n == 0) {
		n = response.stream->read(response.stream, 0, byte, sizeof(byte), false, &wait);
		(void)sched_yield();
	}
	assert_true(n <= 0);
	assert_int_equal(atomic_load(&bench->step), 1);
	assert_int_equal(atomic_load(&bench->server.requests), some ? 2 : 1);
	http_response_clear(&response);
	mirror_close(bench->mirror);
	bench->mirror = NULL;
	vacancy_done(&vacancy);
}

static void what_the_disk_has_no_room_for_is_not_begun(void **state)
{
	check_is_not_begun(*state, false);
}

static void where_room_was_made_it_is_asked_for_once_more(void **state)
{
	check_is_not_begun(*state, true);
}

static void redirects(void *ctx, const struct standin_request *request)
{
	const struct mirror_bench *bench = ctx;
	char text[128];

	(void)snprintf(text, sizeof(text), "Location: http://127.0.0.1:%u%s\r\n", bench->other.port,
		       request->target);
	standin_answer(request, "307 Temporary Redirect", text, STR(""));
}

/* A signed URL, which is for GET alone. */
static void stores(void *ctx, const struct standin_request *request)
{
	struct mirror_bench *bench = ctx;

	if (strstr(request->text, "uthorization"))
		atomic_store(&bench->flag, true);
	if (strcmp(request->method, "HEAD") == 0)
		standin_answer(request, "403 Forbidden", "", STR(""));
	else
		upstream_serves(bench, request);
}

static void a_blob_may_lie_elsewhere(void **state)
{
	struct mirror_bench *bench = *state;
	struct mirror_got got;

	mirror_bench_open(bench, redirects, stores);
	/* A HEAD that is refused there is a GET's headers. */
	mirror_bench_ask_blob(bench, HTTP_HEAD, NULL, &got);
	assert_int_equal(got.status, 200);
	assert_int_equal(got.len, BENCH_BLOB_SIZE);
	mirror_got_done(&got);
	check_gets_blob(bench);
	assert_false(atomic_load(&bench->flag));
	assert_int_equal(atomic_load(&bench->blobs), 1);
}

static void redirects_inside(void *ctx, const struct standin_request *request)
{
	struct mirror_bench *bench = ctx;
	static const char *const places[] = {"169.254.169.254/latest", "[fe80::1]/latest"};
	char text[128];

	(void)snprintf(text, sizeof(text), "Location: http://%s\r\n",
		       places[atomic_load(&bench->step)]);
	standin_answer(request, "307 Temporary Redirect", text, STR(""));
}

static void a_redirect_to_a_link_s_own_addresses_is_refused(void **state)
{
	struct mirror_bench *bench = *state;
	struct mirror_got got;

	bench->options.back_off_ms = 1;
	mirror_bench_open(bench, redirects_inside, NULL);
	for (int i = 0; i < 2; i++) {
		atomic_store(&bench->step, i);
		mirror_bench_ask_blob(bench, HTTP_GET, NULL, &got);
		assert_non_null(memmem(got.body, got.len, "no host of a registry", 21));
		mirror_got_done(&got);
	}
}

/* Blobs lie on a host that is gone; manifests do not. */
static void redirects_blobs(void *ctx, const struct standin_request *request)
{
	if (strstr(request->target, "/blobs/"))
		redirects(ctx, request);
	else
		upstream_serves(ctx, request);
}

static void hangs_up(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	(void)request;
}

static void who_is_silent_elsewhere_is_not_the_upstream(void **state)
{
	struct mirror_bench *bench = *state;
	struct mirror_got got;

	bench->options.back_off_ms = 3600000;
	mirror_bench_open(bench, redirects_blobs, hangs_up);
	for (int i = 0; i < 5; i++) {
		mirror_bench_ask_blob(bench, HTTP_GET, NULL, &got);
		assert_int_equal(got.status, 503);
		mirror_got_done(&got);
	}
	assert_int_equal(mirror_bench_status(bench, BENCH_TAG), 200);
}

static void encodes(void *ctx, const struct standin_request *request)
{
	struct mirror_bench *bench = ctx;

	standin_say(request,
		    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Encoding: gzip\r\n"
		    "Content-Length: %zu\r\n\r\n",
		    BENCH_BLOB_SIZE);
	(void)send(request->fd, bench->blob, BENCH_BLOB_SIZE, MSG_NOSIGNAL);
}

static void an_encoding_that_is_said_is_not_believed(void **state)
{
	struct mirror_bench *bench = *state;
	struct mirror_got got;

	mirror_bench_open(bench, encodes, NULL);
	mirror_bench_ask_blob(bench, HTTP_GET, NULL, &got);
	check_is_blob(bench, &got);
	assert_null(strstr(got.headers, "Content-Encoding"));
	mirror_got_done(&got);
}

/* Leave to read */

static void put_blob(struct mirror_bench *bench)
{
	struct digest digest;
	struct err err = {0};

	check_ok(blob_put(bench->fixture->store, (struct str){bench->blob, BENCH_BLOB_SIZE},
			  &digest, &err),
		 &err);
}

static void what_the_store_has_needs_the_upstream_s_leave(void **state)
{
	struct mirror_bench *bench = *state;

	mirror_bench_open(bench, upstream_serves, NULL);
	put_blob(bench);
	check_gets_blob(bench);
	check_gets_blob(bench);
	assert_int_equal(atomic_load(&bench->heads), 1);
	assert_int_equal(atomic_load(&bench->blobs), 0);
}

static void gives_none(void *ctx, const struct standin_request *request)
{
	struct mirror_bench *bench = ctx;

	standin_answer(request, atomic_load(&bench->flag) ? "403 Forbidden" : "404 Not Found", "",
		       STR("<html>no</html>"));
}

static void without_that_leave_it_is_not_given(void **state)
{
	struct mirror_bench *bench = *state;
	struct mirror_got got;

	mirror_bench_open(bench, gives_none, NULL);
	put_blob(bench);
	mirror_bench_ask_blob(bench, HTTP_GET, NULL, &got);
	assert_int_equal(got.status, 404);
	assert_non_null(strstr(got.body, "BLOB_UNKNOWN"));
	mirror_got_done(&got);
	atomic_store(&bench->flag, true);
	mirror_bench_ask_blob(bench, HTTP_GET, NULL, &got);
	assert_int_equal(got.status, 403);
	assert_non_null(strstr(got.body, "DENIED"));
	mirror_got_done(&got);
}

static void a_head_asks_by_head(void **state)
{
	struct mirror_bench *bench = *state;
	struct mirror_got got;

	mirror_bench_open(bench, upstream_serves, NULL);
	mirror_bench_ask_blob(bench, HTTP_HEAD, NULL, &got);
	assert_int_equal(got.status, 200);
	assert_int_equal(got.len, BENCH_BLOB_SIZE);
	mirror_got_done(&got);
	assert_int_equal(atomic_load(&bench->heads), 1);
	assert_int_equal(atomic_load(&bench->blobs), 0);
	check_gets_blob(bench);
}

static void knows_no_head(void *ctx, const struct standin_request *request)
{
	if (strcmp(request->method, "HEAD") == 0)
		standin_answer(request, "405 Method Not Allowed", "", STR(""));
	else
		upstream_serves(ctx, request);
}

static void where_head_is_unknown_a_get_tells_as_much(void **state)
{
	struct mirror_bench *bench = *state;
	struct mirror_got got;

	mirror_bench_open(bench, knows_no_head, NULL);
	mirror_bench_ask_blob(bench, HTTP_HEAD, NULL, &got);
	assert_int_equal(got.status, 200);
	assert_int_equal(got.len, BENCH_BLOB_SIZE);
	mirror_got_done(&got);
	check_gets_blob(bench);
	assert_int_equal(atomic_load(&bench->blobs), 1);
}

static void a_sha512_is_a_name_like_the_other(void **state)
{
	struct mirror_bench *bench = *state;

	bench->algorithm = DIGEST_SHA512;
	mirror_bench_open(bench, upstream_serves, NULL);
	check_gets_blob(bench);
	check_gets_blob(bench);
	assert_int_equal(atomic_load(&bench->server.requests), 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(many_askers_are_one_request),
		TEST(it_streams_while_it_arrives),
		TEST(a_blob_that_is_cut_goes_on_where_it_was),
		TEST(a_blob_that_stops_goes_on_by_another_connection),
		TEST(a_range_that_is_ignored_is_skipped),
		TEST(a_range_that_is_refused_is_got_whole),
		TEST(a_range_that_starts_elsewhere_is_not_taken),
		TEST(a_connection_that_breaks_is_made_anew),
		TEST(wrong_bytes_are_cut_off_and_not_kept),
		TEST(a_shorter_blob_is_not_kept),
		TEST(a_blob_without_a_length_comes_whole),
		TEST(what_the_disk_has_no_room_for_is_not_begun),
		TEST(where_room_was_made_it_is_asked_for_once_more),
		TEST(a_blob_may_lie_elsewhere),
		TEST(a_redirect_to_a_link_s_own_addresses_is_refused),
		TEST(who_is_silent_elsewhere_is_not_the_upstream),
		TEST(an_encoding_that_is_said_is_not_believed),
		TEST(what_the_store_has_needs_the_upstream_s_leave),
		TEST(without_that_leave_it_is_not_given),
		TEST(a_head_asks_by_head),
		TEST(where_head_is_unknown_a_get_tells_as_much),
		TEST(a_sha512_is_a_name_like_the_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
