/* SPDX-License-Identifier: Apache-2.0 */
/* server_request_test.c - what a request says: the handler answers with what it was given. */
#include "tests/api/server_bench.h"

#include <stdio.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_is_decoded_but_for_what_would_change_its_parts),
		cmocka_unit_test(a_query_is_decoded_and_refused_where_it_cannot_be),
	};

	return cmocka_run_group_tests_name("api/server_request", tests, NULL, NULL);
}
