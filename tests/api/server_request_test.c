/* SPDX-License-Identifier: Apache-2.0 */
/* server_request_test.c - what a request says: the handler answers with what it was given. */
#include "tests/api/server_bench.h"

#include <stdio.h>

#define CHUNKED "POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"

static void a_path_is_decoded_but_for_what_would_change_its_parts(void **state)
{
	static const struct {
		const char *sent;
		const char *given;
	} cases[] = {
		{"/v1/%61gents%2elist?x=%2f", "/v1/agents.list"},
		{"/a+b", "/a+b"},
		{"/a%2fb", "/a%2fb"},
		{"/%61%2Fb?%2F", "/%61%2Fb"},
		{"/a%00b", "/a%00b"},
		{"/a%252fb", "/a%2fb"},
		{"//a/./%2e%2e/b", "//a/./../b"},
	};
	struct server_bench bench;
	auto_close int fd = -1;
	char wanted[64];

	(void)state;
	server_bench_open(&bench, &(struct server_options){0});
	fd = client_dial(&bench);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		(void)snprintf(wanted, sizeof(wanted), "\r\n\r\n%s", cases[i].given);
		client_get(fd, cases[i].sent);
		assert_true(client_hear(fd, wanted));
	}
	server_bench_close(&bench);
}

static void a_query_is_decoded_and_refused_where_it_cannot_be(void **state)
{
	static const char *const wrong[] = {"/plain?a=%", "/plain?%zz=1", "/plain?a=b&c=%00"};
	struct server_bench bench;
	auto_close int fd = -1;

	(void)state;
	server_bench_open(&bench, &(struct server_options){0});
	fd = client_dial(&bench);
	client_get(fd, "/query?a%3d=b%2Fc%26+d&&e");
	assert_true(client_hear(fd, "\r\n\r\n[a=][b/c& d][][][e][]"));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		client_get(fd, wrong[i]);
		assert_true(client_hear(fd, "400 Bad Request"));
	}
	server_bench_close(&bench);
}

/* By the handler, whose words they are in; and nothing that follows is a request. */
static void what_a_header_hides_is_refused(void **state)
{
	static const struct str wrong[] = {
		STR("GET /plain HTTP/1.1\r\n\r\n"),
		STR("GET /plain HTTP/1.1\r\nX: y\r\n\r\n"),
		STR("GET /pl\0ain HTTP/1.1\r\nHost: x\r\n\r\n"),
		STR("GET /pl\rain HTTP/1.1\r\nHost: x\r\n\r\n"),
		STR("GET /pl\tain HTTP/1.1\r\nHost: x\r\n\r\n"),
		STR("GET /pl ain HTTP/1.1\r\nHost: x\r\n\r\n"),
		STR("GET /plain?a=b\0c HTTP/1.1\r\nHost: x\r\n\r\n"),
		STR("GET /plain?a=b\rc HTTP/1.1\r\nHost: x\r\n\r\n"),
		STR("GET /plain HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n"),
		STR("GET /plain HTTP/1.1\r\nX: a\0b\r\nHost: x\r\n\r\n"),
		STR("GET /plain HTTP/1.1\r\nHost: x\r\nX: a\rb\r\n\r\n"),
		STR("GET /plain HTTP/1.1\r\nHost: x\r\nX: a\x7f\r\n\r\n"),
		STR("GET /plain HTTP/1.1\r\nHost: x\r\nX\r: a\r\n\r\n"),
		STR("GET /plain HTTP/1.1\r\nHost: x\r\nX Y: a\r\n\r\n"),
		STR("GET /plain HTTP/1.1\r\nHost: x\r\n: a\r\n\r\n"),
		/* A second line belongs to the first one, or is a request. */
		STR("GET /plain HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n"),
		STR("GET /plain HTTP/1.1\r\nX: a\r\n\tb\r\nHost: x\r\n\r\n"),
		STR("GET /plain HTTP/1.1\r\nHost: x\r\nContent-Length : 30\r\n\r\n"
		    "GET /second HTTP/1.1\r\nHost: x\r\n\r\n"),
		STR("GET /plain HTTP/1.1\r\nHost: x\r\nContent-Length: 0\0 30\r\n\r\n"
		    "GET /second HTTP/1.1\r\nHost: x\r\n\r\n"),
		STR("POST /plain HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n x\r\n\r\n"
		    "GET /second HTTP/1.1\r\nHost: x\r\n\r\n"),
		STR("POST /plain HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: "
		    "chunked\r\n\r\n0\r\n\r\n"),
	};
	struct server_bench bench;

	(void)state;
	server_bench_open(&bench, &(struct server_options){0});
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		auto_close int fd = client_dial(&bench);

		client_say_bytes(fd, wrong[i]);
		if (!client_hear(fd, "Content-Type: text/plain") || !client_hear_end(fd))
			fail_msg("%zu: " STR_FMT, i, STR_ARG(wrong[i]));
	}
	server_bench_close(&bench);
	assert_int_equal(bench.asked, 0);
}

/* By libmicrohttpd, in words of its own: the handler hears of none, or no end of it. */
static void what_cannot_be_read_is_refused_and_ends_the_connection(void **state)
{
	static const struct {
		const char *sent;
		const char *status;
	} cases[] = {
		{"GET /plain\r\n\r\n", "HTTP/1.1 400"},
		{"GET /plain HTTP/0.9\r\n\r\n", "HTTP/1.1 505"},
		{"GET /plain HTTP/2.0\r\nHost: x\r\n\r\n", "HTTP/1.1 505"},
		{"GET /plain http/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 400"},
		{"GET /plain HTTP/1.1\r\nHost: x\r\nX\r\n\r\n", "HTTP/1.1 400"},
		{"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n", "HTTP/1.1 400"},
		{"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 400"},
		{"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\n", "HTTP/1.1 400"},
		{"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 1, 1\r\n\r\n", "HTTP/1.1 400"},
		{"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
		 "HTTP/1.1 413"},
		{CHUNKED "x\r\n", "HTTP/1.1 400"},
		{CHUNKED "-1\r\n", "HTTP/1.1 400"},
		{CHUNKED "0x1\r\n", "HTTP/1.1 400"},
		{CHUNKED "1\r\nab\r\n", "HTTP/1.1 400"},
		{CHUNKED "fffffffffffffffff\r\n", "HTTP/1.1 413"},
	};
	struct server_bench bench;

	(void)state;
	server_bench_open(&bench, &(struct server_options){0});
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_close int fd = client_dial(&bench);

		client_say(fd, cases[i].sent);
		if (!client_hear(fd, cases[i].status) || !client_hear_end(fd))
			fail_msg("%s", cases[i].sent);
	}
	server_bench_close(&bench);
	assert_int_equal(bench.asked, 0);
}

static void what_is_too_long_is_refused_and_ends_the_connection(void **state)
{
	auto_buf struct buf text = BUF_INIT(SERVER_CONNECTION_BYTES * 2);
	struct server_bench bench;
	auto_close int url = -1;
	auto_close int header = -1;
	struct err err = {0};

	(void)state;
	server_bench_open(&bench, &(struct server_options){0});
	url = client_dial(&bench);
	check_ok(buf_addf(&text, &err, "GET /%0*d", (int)SERVER_CONNECTION_BYTES, 0), &err);
	client_say_bytes(url, buf_str(&text));
	assert_true(client_hear(url, "HTTP/1.1 414"));
	assert_true(client_hear_end(url));
	header = client_dial(&bench);
	buf_clear(&text);
	check_ok(buf_addf(&text, &err, "GET / HTTP/1.1\r\nHost: x\r\nX: %0*d",
			  (int)SERVER_CONNECTION_BYTES, 0),
		 &err);
	client_say_bytes(header, buf_str(&text));
	assert_true(client_hear(header, "HTTP/1.1 431"));
	assert_true(client_hear_end(header));
	server_bench_close(&bench);
	assert_int_equal(bench.asked, 0);
}

/* What is too long for us, but not for the connection's memory, is answered in our words. */
static void a_long_head_is_431(void **state)
{
	auto_buf struct buf text = BUF_INIT(SERVER_HEAD_BYTES * 2);
	struct server_bench bench;
	auto_close int fd = -1;
	struct err err = {0};

	(void)state;
	server_bench_open(&bench, &(struct server_options){0});
	fd = client_dial(&bench);
	check_ok(buf_addf(&text, &err, "GET /plain HTTP/1.1\r\nHost: x\r\nX: %0*d\r\n\r\n",
			  (int)SERVER_HEAD_BYTES - 100, 0),
		 &err);
	client_say_bytes(fd, buf_str(&text));
	assert_true(client_hear(fd, "\r\n\r\n/plain"));
	buf_clear(&text);
	check_ok(buf_addf(&text, &err, "GET /plain HTTP/1.1\r\nHost: x\r\nX: %0*d\r\n\r\n",
			  (int)SERVER_HEAD_BYTES, 0),
		 &err);
	client_say_bytes(fd, buf_str(&text));
	assert_true(client_hear(fd, "HTTP/1.1 431"));
	client_say(fd, "GET /plain HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_true(client_hear(fd, "\r\n\r\n/plain"));
	server_bench_close(&bench);
}

/* Nothing of what is allowed, though few send it, is taken for that. */
static void what_is_odd_and_allowed_is_served(void **state)
{
	static const struct str odd[] = {
		STR("GET /plain HTTP/1.0\r\n\r\n"),
		STR("GET /plain? HTTP/1.1\r\nHost:x\r\n\r\n"),
		STR("GET /plain?&a&&b=c=d&=&e+f HTTP/1.1\r\nHost: x\r\nX:\r\nY: \r\n\r\n"),
		STR("GET /plain HTTP/1.1\r\nHost: \t x\r\nX: a\tb  \r\n\r\n"),
		STR("GET /plain HTTP/1.1\nHost: x\nX: y\n\n"),
		STR("\r\nGET /plain HTTP/1.1\r\nHost: x\r\n!#$%&'*+-.^_`|~09aZ: \xc3\xa9\r\n\r\n"),
		STR("POST /plain HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n"
		    "6\r\n/plain\r\n0\r\n\r\n"),
	};
	struct server_bench bench;

	(void)state;
	server_bench_open(&bench, &(struct server_options){0});
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		auto_close int fd = client_dial(&bench);

		client_say_bytes(fd, odd[i]);
		if (!client_hear(fd, "\r\n\r\n/plain"))
			fail_msg("%zu: " STR_FMT, i, STR_ARG(odd[i]));
	}
	server_bench_close(&bench);
}

/* It comes in pieces, and the server makes room for it as it comes. */
static void a_long_header_is_as_good_as_a_short_one(void **state)
{
	struct server_bench bench;
	auto_close int fd = -1;
	char line[2048];

	(void)state;
	server_bench_open(&bench, &(struct server_options){0});
	fd = client_dial(&bench);
	for (int request = 0; request < 3; request++) {
		client_say(fd, "GET /plain?a=b HTTP/1.1\r\nHost: x\r\n");
		for (int i = 0; i < 4; i++) {
			(void)snprintf(line, sizeof(line), "X-%d: %02000d\r\n", i, 0);
			client_say(fd, line);
		}
		client_say(fd, "\r\n");
		assert_true(client_hear(fd, "\r\n\r\n/plain"));
	}
	server_bench_close(&bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_is_decoded_but_for_what_would_change_its_parts),
		cmocka_unit_test(a_query_is_decoded_and_refused_where_it_cannot_be),
		cmocka_unit_test(what_a_header_hides_is_refused),
		cmocka_unit_test(what_cannot_be_read_is_refused_and_ends_the_connection),
		cmocka_unit_test(what_is_too_long_is_refused_and_ends_the_connection),
		cmocka_unit_test(a_long_head_is_431),
		cmocka_unit_test(what_is_odd_and_allowed_is_served),
		cmocka_unit_test(a_long_header_is_as_good_as_a_short_one),
	};

	return cmocka_run_group_tests_name("api/server_request", tests, NULL, NULL);
}
