/* SPDX-License-Identifier: Apache-2.0 */
/* server_test.c - requests and their answers, asked over loopback. */
#include "tests/api/server_bench.h"

static void a_connection_serves_many_requests(void **state)
{
	struct server_bench bench;
	auto_close int fd = -1;

	(void)state;
	server_bench_open(&bench, &(struct server_options){0});
	fd = client_dial(&bench);
	for (int i = 0; i < 3; i++) {
		client_get(fd, "/plain");
		assert_true(client_hear(fd, "\r\n\r\n/plain"));
		client_get(fd, "/refused");
		assert_true(client_hear(fd, "403"));
	}
	client_say(fd, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody");
	assert_true(client_hear(fd, "\r\n\r\nbody"));
	server_bench_close(&bench);
}

static void who_waits_is_woken_or_told_that_it_is_over(void **state)
{
	struct server_bench bench;
	auto_close int fd = -1;

	(void)state;
	server_bench_open(&bench, &(struct server_options){0});
	fd = client_dial(&bench);
	client_get(fd, "/wait");
	server_bench_await(&bench, &bench.asked, 1);
	server_wake(bench.server, http_topic(STR("another")));
	server_wake(bench.server, http_topic(STR("wait")));
	assert_true(client_hear(fd, "woken"));
	client_get(fd, "/due");
	assert_true(client_hear(fd, "/due"));
	client_get(fd, "/wait");
	server_bench_await(&bench, &bench.asked, 5); /* /due was asked twice */
	assert_true(server_drain(bench.server, SERVER_BENCH_PATIENCE_MS));
	assert_true(client_hear(fd, "over"));
	server_free(bench.server);
}

static void a_client_that_leaves_while_it_waits_is_noticed(void **state)
{
	struct server_bench bench;
	int fd;

	(void)state;
	server_bench_open(&bench, &(struct server_options){0});
	fd = client_dial(&bench);
	client_get(fd, "/wait");
	server_bench_await(&bench, &bench.asked, 1);
	(void)close(fd);
	server_bench_await(&bench, &bench.vanished, 1);
	server_bench_close(&bench);
}

static void what_blocks_does_not_hold_up_others(void **state)
{
	struct server_bench bench;
	int slow[6];

	(void)state;
	server_bench_open(&bench, &(struct server_options){0});
	for (size_t i = 0; i < 6; i++) {
		slow[i] = client_dial(&bench);
		client_get(slow[i], "/slow");
	}
	server_bench_await(&bench, &bench.asked, 6);
	assert_int_equal(server_load(bench.server).waiting, 0); /* these are worked on */
	for (int i = 0; i < 8; i++) {
		auto_close int fd = client_dial(&bench);

		client_get(fd, "/plain");
		assert_true(client_hear(fd, "/plain"));
	}
	server_bench_release(&bench);
	for (size_t i = 0; i < 6; i++) {
		assert_true(client_hear(slow[i], "slow"));
		(void)close(slow[i]);
	}
	server_bench_close(&bench);
}

static void a_request_that_can_be_read_in_two_ways_is_refused(void **state)
{
	static const char *const wrong[] = {
		"Host: x\r\nHost: y\r\n",
		"Host: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n",
		"Host: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n",
		"Host: x\r\nTransfer-Encoding: gzip\r\n",
	};
	struct server_bench bench;

	(void)state;
	server_bench_open(&bench, &(struct server_options){0});
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		auto_close int fd = client_dial(&bench);

		client_say(fd, "POST /plain HTTP/1.1\r\n");
		client_say(fd, wrong[i]);
		client_say(fd, "\r\n");
		assert_true(client_hear(fd, "400 Bad Request"));
		assert_true(client_hear_end(fd));
	}
	server_bench_close(&bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_connection_serves_many_requests),
		cmocka_unit_test(who_waits_is_woken_or_told_that_it_is_over),
		cmocka_unit_test(a_client_that_leaves_while_it_waits_is_noticed),
		cmocka_unit_test(what_blocks_does_not_hold_up_others),
		cmocka_unit_test(a_request_that_can_be_read_in_two_ways_is_refused),
	};

	return cmocka_run_group_tests_name("api/server", tests, NULL, NULL);
}
