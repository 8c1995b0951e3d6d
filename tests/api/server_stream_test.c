/* SPDX-License-Identifier: Apache-2.0 */
/* server_stream_test.c - answers that are made while they are sent. */
#include "tests/api/server_bench.h"

#include <sys/socket.h>

static void a_stream_waits_and_ends_with_the_server(void **state)
{
	struct server_bench bench;
	auto_close int fd = -1;
	int gone;

	(void)state;
	server_bench_open(&bench, &(struct server_options){0});
	fd = client_dial(&bench);
	client_get(fd, "/words");
	assert_true(client_hear(fd, "one\n"));
	server_bench_await(&bench, &bench.asked, 1);
	server_wake(bench.server, http_topic(STR("words")));
	assert_true(client_hear(fd, "one\n"));
	server_bench_await(&bench, &bench.asked, 2);
	gone = client_dial(&bench);
	client_get(gone, "/words");
	server_bench_await(&bench, &bench.asked, 3);
	(void)close(gone);
	server_bench_await(&bench, &bench.closed, 1);
	assert_true(server_drain(bench.server, SERVER_BENCH_PATIENCE_MS));
	assert_true(client_hear(fd, "end\n"));
	server_free(bench.server);
	assert_int_equal(bench.closed, 2);
}

static void streams_that_search_hold_up_no_request(void **state)
{
	struct server_bench bench;
	auto_close int fd = -1;
	int searching[4];

	(void)state;
	server_bench_open(&bench, &(struct server_options){0});
	for (size_t i = 0; i < 4; i++) {
		searching[i] = client_dial(&bench);
		client_get(searching[i], "/search");
	}
	server_bench_await(&bench, &bench.asked, SERVER_STREAM_THREADS);
	fd = client_dial(&bench);
	client_get(fd, "/plain");
	assert_true(client_hear(fd, "/plain"));
	(void)close(searching[0]);
	server_bench_release(&bench);
	for (size_t i = 1; i < 4; i++) {
		assert_true(client_hear(searching[i], "0\r\n\r\n"));
		(void)close(searching[i]);
	}
	server_bench_await(&bench, &bench.closed, 4);
	server_bench_close(&bench);
}

static void nothing_of_a_stream_is_sent_to_who_asks_for_its_head(void **state)
{
	struct server_bench bench;
	auto_close int fd = -1;
	char heard[4096];
	size_t len = 0;
	ssize_t n;

	(void)state;
	server_bench_open(&bench, &(struct server_options){0});
	fd = client_dial(&bench);
	client_say(fd, "HEAD /words HTTP/1.1\r\nHost: x\r\n\r\n"
		       "GET /plain HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	while ((n = recv(fd, heard + len, sizeof(heard) - len, 0)) > 0)
		len += (size_t)n;
	assert_non_null(memmem(heard, len, "\r\n\r\nHTTP/1.1 200 OK", 19));
	assert_non_null(memmem(heard, len, "/plain", 6));
	server_bench_await(&bench, &bench.closed, 1);
	server_bench_close(&bench);
}

/* The answer's header, and then bytes that know where they stand. */
static void client_take_big(int fd)
{
	static char piece[64 * 1024];
	uint64_t at = 0;

	for (char end[4] = ""; memcmp(end, "\r\n\r\n", 4) != 0;) {
		memmove(end, end + 1, 3);
		assert_int_equal(recv(fd, end + 3, 1, 0), 1);
	}
	while (at < SERVER_BENCH_BIG_BYTES) {
		ssize_t n = recv(fd, piece, sizeof(piece), 0);

		assert_true(n > 0);
		for (ssize_t i = 0; i < n; i++, at++)
			assert_int_equal(piece[i], 'a' + at % 26);
	}
}

static void a_stream_of_known_length_is_whole(void **state)
{
	static const char *const paths[] = {"/big", "/near"};
	struct server_bench bench;
	auto_close int fd = -1;

	(void)state;
	server_bench_open(&bench, &(struct server_options){0});
	fd = client_dial(&bench);
	for (size_t i = 0; i < 2; i++) {
		client_get(fd, paths[i]);
		client_take_big(fd);
	}
	client_get(fd, "/plain");
	assert_true(client_hear(fd, "/plain"));
	server_bench_close(&bench);
}

static void many_streams_at_once_are_whole_too(void **state)
{
	struct server_bench bench;
	int fds[40]; /* more than have large blocks */

	(void)state;
	server_bench_open(&bench, &(struct server_options){0});
	for (size_t i = 0; i < 40; i++) {
		fds[i] = client_dial(&bench);
		client_get(fds[i], i % 2 == 0 ? "/near" : "/big");
	}
	server_bench_await(&bench, &bench.asked, 40);
	for (size_t i = 0; i < 20; i++)
		client_take_big(fds[i]);
	for (size_t i = 0; i < 40; i++) /* half of them leave in the middle */
		assert_int_equal(close(fds[i]), 0);
	server_bench_close(&bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stream_waits_and_ends_with_the_server),
		cmocka_unit_test(streams_that_search_hold_up_no_request),
		cmocka_unit_test(nothing_of_a_stream_is_sent_to_who_asks_for_its_head),
		cmocka_unit_test(a_stream_of_known_length_is_whole),
		cmocka_unit_test(many_streams_at_once_are_whole_too),
	};

	return cmocka_run_group_tests_name("api/server_stream", tests, NULL, NULL);
}
