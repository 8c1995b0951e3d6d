/* SPDX-License-Identifier: Apache-2.0 */
/* server_end_test.c - connections that end, and the server's own end. */
#include "tests/api/server_bench.h"

static void who_is_slow_with_headers_or_body_is_closed(void **state)
{
	const struct server_options options = {.header_ms = 300, .body_ms = 300, .idle_ms = 300};
	struct server_bench bench;
	auto_close int silent = -1;
	auto_close int half = -1;
	auto_close int stalled = -1;
	auto_close int streaming = -1;
	auto_close int idle = -1;

	(void)state;
	server_bench_open(&bench, &options);
	silent = client_dial(&bench);
	half = client_dial(&bench);
	client_say(half, "GET /plain HTTP/1.1\r\nHost:");
	stalled = client_dial(&bench);
	client_say(stalled, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\nhalf");
	streaming = client_dial(&bench);
	client_say(streaming, "POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\nabcd");
	idle = client_dial(&bench);
	client_get(idle, "/plain");
	assert_true(client_hear(idle, "/plain"));
	assert_true(client_hear_end(idle));
	assert_true(client_hear_end(silent));
	assert_true(client_hear_end(half));
	assert_true(client_hear_end(stalled));
	assert_true(client_hear_end(streaming));
	server_bench_await(&bench, &bench.vanished, 2);
	server_bench_close(&bench);
}

static void a_drain_waits_only_so_long(void **state)
{
	struct server_bench bench;
	auto_close int late = -1;
	auto_close int fd = -1;

	(void)state;
	server_bench_open(&bench, &(struct server_options){0});
	fd = client_dial(&bench);
	client_get(fd, "/slow");
	server_bench_await(&bench, &bench.asked, 1);
	assert_false(server_drain(bench.server, 10));
	late = client_dial(&bench);
	assert_true(client_hear_end(late));
	assert_int_equal(server_load(bench.server).requests, 1);
	server_bench_release(&bench);
	assert_true(client_hear(fd, "Connection: close"));
	assert_true(server_drain(bench.server, SERVER_BENCH_PATIENCE_MS));
	server_free(bench.server);
}

static void a_drain_cuts_clients_that_stall(void **state)
{
	struct server_bench bench;
	auto_close int sending = -1;
	auto_close int streaming = -1;
	auto_close int reading = -1;

	(void)state;
	server_bench_open(&bench, &(struct server_options){0});
	sending = client_dial(&bench);
	client_say(sending, "POST /plain HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
	streaming = client_dial(&bench);
	client_upload(streaming, "", SERVER_BENCH_BODY_MAX * 1000, SERVER_BENCH_BODY_MAX);
	reading = client_dial(&bench);
	client_get(reading, "/big");
	server_bench_await(&bench, &bench.asked, 1);
	server_bench_await_requests(&bench, 3);
	/* The cut is made by the first one, whether or not all have heard of it by its end. */
	if (!server_drain(bench.server, 100))
		assert_true(server_drain(bench.server, SERVER_BENCH_PATIENCE_MS));
	assert_true(client_hear_end(sending));
	assert_true(client_hear_end(streaming));
	server_free(bench.server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_slow_with_headers_or_body_is_closed),
		cmocka_unit_test(a_drain_waits_only_so_long),
		cmocka_unit_test(a_drain_cuts_clients_that_stall),
	};

	return cmocka_run_group_tests_name("api/server_end", tests, NULL, NULL);
}
