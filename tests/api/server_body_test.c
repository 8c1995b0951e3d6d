/* SPDX-License-Identifier: Apache-2.0 */
/* server_body_test.c - bodies that clients send. */
#include "tests/api/server_bench.h"

#include <sys/socket.h>

static void a_body_streams_to_who_reads_it(void **state)
{
	struct server_bench bench;
	auto_close int fd = -1;
	auto_close int gone = -1;

	(void)state;
	server_bench_open(&bench, &(struct server_options){0});
	fd = client_dial(&bench);
	client_upload(fd, "", 3000000, 3000000);
	assert_true(client_hear(fd, "3000000 bytes, 0 wrong"));
	client_upload(fd, "", 0, 0);
	assert_true(client_hear(fd, "0 bytes, 0 wrong"));
	client_upload(fd, "X-Enough: 1\r\n", 2000000, 2000000);
	assert_true(client_hear(fd, "bytes, 0 wrong"));
	gone = client_dial(&bench);
	client_upload(gone, "", 3000000, 1000000);
	(void)shutdown(gone, SHUT_RDWR);
	server_bench_await(&bench, &bench.vanished, 1);
	server_bench_close(&bench);
}

static void bodies_above_those_that_have_a_thread_wait_for_one(void **state)
{
	int fds[SERVER_BODIES_MAX + 3];
	struct server_bench bench;

	(void)state;
	server_bench_open(&bench, &(struct server_options){0});
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		fds[i] = client_dial(&bench);
		client_say(fds[i],
			   "POST /held HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nabcd");
	}
	server_bench_await(&bench, &bench.asked, SERVER_BODIES_MAX);
	server_bench_await_requests(&bench, sizeof(fds) / sizeof(fds[0]));
	server_bench_release(&bench);
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		assert_true(client_hear(fds[i], "4 bytes, 0 wrong"));
		(void)close(fds[i]);
	}
	server_bench_close(&bench);
}

static void nobody_has_more_than_half_of_the_threads_for_bodies(void **state)
{
	int fds[SERVER_BODIES_MAX + 3];
	size_t last = sizeof(fds) / sizeof(fds[0]) - 1;
	struct server_bench bench;

	(void)state;
	server_bench_open(&bench, &(struct server_options){0});
	for (size_t i = 0; i < last; i++) {
		fds[i] = client_dial(&bench);
		client_say(fds[i], "POST /held HTTP/1.1\r\nHost: x\r\nFrom: a\r\n"
				   "Content-Length: 4\r\n\r\nabcd");
	}
	server_bench_await(&bench, &bench.asked, SERVER_BODIES_MAX / 2);
	server_bench_await_requests(&bench, last);
	fds[last] = client_dial(&bench);
	client_say(fds[last], "POST /upload HTTP/1.1\r\nHost: x\r\nFrom: b\r\n"
			      "Content-Length: 4\r\n\r\nabcd");
	assert_true(client_hear(fds[last], "4 bytes, 0 wrong"));
	server_bench_release(&bench);
	for (size_t i = 0; i <= last; i++) {
		if (i < last)
			assert_true(client_hear(fds[i], "4 bytes, 0 wrong"));
		(void)close(fds[i]);
	}
	server_bench_close(&bench);
}

/* However many tokens somebody shows. */
static void no_address_has_more_than_three_quarters_of_them(void **state)
{
	int fds[SERVER_BODIES_MAX + 3];
	size_t last = sizeof(fds) / sizeof(fds[0]) - 1;
	struct server_bench bench;

	(void)state;
	server_bench_open(&bench, &(struct server_options){0});
	for (size_t i = 0; i < last; i++) {
		fds[i] = client_dial(&bench);
		client_say(fds[i], i % 2 ? "POST /held HTTP/1.1\r\nHost: x\r\nFrom: a\r\n"
					 : "POST /held HTTP/1.1\r\nHost: x\r\nFrom: b\r\n");
		client_say(fds[i], "Content-Length: 4\r\n\r\nabcd");
	}
	server_bench_await(&bench, &bench.asked, SERVER_BODIES_MAX / 4 * 3);
	server_bench_await_requests(&bench, last);
	fds[last] = client_dial_from(&bench, 2);
	client_say(fds[last], "POST /upload HTTP/1.1\r\nHost: x\r\nFrom: c\r\n"
			      "Content-Length: 4\r\n\r\nabcd");
	assert_true(client_hear(fds[last], "4 bytes, 0 wrong"));
	server_bench_release(&bench);
	for (size_t i = 0; i <= last; i++) {
		if (i < last)
			assert_true(client_hear(fds[i], "4 bytes, 0 wrong"));
		(void)close(fds[i]);
	}
	server_bench_close(&bench);
}

static void a_body_that_is_too_large_is_refused(void **state)
{
	struct server_bench bench;
	auto_close int fd = -1;
	auto_close int chunked = -1;
	auto_close int expecting = -1;
	char body[256];

	(void)state;
	server_bench_open(&bench, &(struct server_options){0});
	memset(body, 'x', sizeof(body) - 1);
	body[sizeof(body) - 1] = '\0';
	fd = client_dial(&bench);
	client_say(fd, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 255\r\n\r\n");
	client_say(fd, body);
	assert_true(client_hear(fd, "413"));
	client_get(fd, "/plain");
	assert_true(client_hear(fd, "\r\n\r\n/plain"));
	chunked = client_dial(&bench);
	client_say(chunked,
		   "POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n");
	client_say(chunked, body);
	client_say(chunked, "\r\n0\r\n\r\n");
	assert_true(client_hear(chunked, "413"));
	expecting = client_dial(&bench);
	client_say(expecting, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n");
	assert_true(client_hear(expecting, "413"));
	assert_true(client_hear_end(expecting));
	server_bench_close(&bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_body_streams_to_who_reads_it),
		cmocka_unit_test(bodies_above_those_that_have_a_thread_wait_for_one),
		cmocka_unit_test(nobody_has_more_than_half_of_the_threads_for_bodies),
		cmocka_unit_test(no_address_has_more_than_three_quarters_of_them),
		cmocka_unit_test(a_body_that_is_too_large_is_refused),
	};

	return cmocka_run_group_tests_name("api/server_body", tests, NULL, NULL);
}
