/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/pass.h"
#include "tests/check.h"

#include <string.h>
#include <sys/socket.h>

static int open_pair(void **state)
{
	static int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	*state = pair;
	return 0;
}

static int close_pair(void **state)
{
	const int *pair = *state;

	auto_close_release(&pair[0]);
	auto_close_release(&pair[1]);
	return 0;
}

static void descriptors_arrive_in_their_order(void **state)
{
	const int *pair = *state;
	char text[4] = "";
	int pipes[2];
	int fds[PASS_FDS_MAX];
	struct err err = {0};

	assert_int_equal(pipe(pipes), 0);
	check_ok(pass_send(pair[0], "two", 4, pipes, 2, &err), &err);
	assert_int_equal(pass_receive(pair[1], text, sizeof(text), fds, &err), 1);
	assert_string_equal(text, "two");
	assert_int_equal(fds[2], -1);
	assert_int_equal(write(fds[1], "x", 1), 1);
	assert_int_equal(read(pipes[0], text, 1), 1);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(close(fds[i]), 0);
		assert_int_equal(close(pipes[i]), 0);
	}
}

static void a_message_may_have_none(void **state)
{
	const int *pair = *state;
	char byte;
	int fds[PASS_FDS_MAX];
	struct err err = {0};

	check_ok(pass_send(pair[0], "n", 1, NULL, 0, &err), &err);
	assert_int_equal(pass_receive(pair[1], &byte, 1, fds, &err), 1);
	assert_int_equal(fds[0], -1);
}

static void another_size_is_refused_and_nothing_kept(void **state)
{
	const int *pair = *state;
	char bytes[8];
	int fds[PASS_FDS_MAX];
	struct err err = {0};

	check_ok(pass_send(pair[0], "long", 4, pair, 1, &err), &err);
	check_err(pass_receive(pair[1], bytes, 2, fds, &err), &err, ERR_CORRUPT);
	assert_int_equal(fds[0], -1);
	check_ok(pass_send(pair[0], "s", 1, pair, 1, &err), &err);
	check_err(pass_receive(pair[1], bytes, 2, fds, &err), &err, ERR_CORRUPT);
	assert_int_equal(fds[0], -1);
}

static void an_end_is_no_error_to_who_receives(void **state)
{
	int *pair = *state;
	char byte;
	int fds[PASS_FDS_MAX];
	struct err err = {0};

	assert_int_equal(close(pair[0]), 0);
	pair[0] = -1;
	assert_int_equal(pass_receive(pair[1], &byte, 1, fds, &err), 0);
	check_err(pass_send(pair[1], "n", 1, NULL, 0, &err), &err, ERR_UNAVAILABLE);
}

#define PAIR_TEST(test) cmocka_unit_test_setup_teardown(test, open_pair, close_pair)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PAIR_TEST(descriptors_arrive_in_their_order),
		PAIR_TEST(a_message_may_have_none),
		PAIR_TEST(another_size_is_refused_and_nothing_kept),
		PAIR_TEST(an_end_is_no_error_to_who_receives),
	};

	return cmocka_run_group_tests_name("layers/pass", tests, NULL, NULL);
}
