/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/wire.h"
#include "tests/check.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void open_pair(int ends[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
}

static void frames_arrive_as_they_were_sent(void **state)
{
	auto_buf struct buf payload = BUF_INIT(WIRE_PAYLOAD_MAX);
	enum wire_type type;
	struct err err = {0};
	int ends[2];

	(void)state;
	open_pair(ends);
	check_ok(wire_send(ends[0], WIRE_LOG, ((struct str){"a\0b", 3}), &err), &err);
	check_ok(wire_send(ends[0], WIRE_LEAVE, STR(""), &err), &err);
	assert_int_equal(close(ends[0]), 0);
	assert_int_equal(wire_receive(ends[1], NULL, &type, &payload, &err), 1);
	assert_int_equal(type, WIRE_LOG);
	assert_int_equal(payload.len, 3);
	assert_memory_equal(payload.ptr, "a\0b", 3);
	assert_int_equal(wire_receive(ends[1], NULL, &type, &payload, &err), 1);
	assert_int_equal(type, WIRE_LEAVE);
	assert_int_equal(payload.len, 0);
	assert_int_equal(wire_receive(ends[1], NULL, &type, &payload, &err), 0);
	assert_int_equal(close(ends[1]), 0);
}

static void a_frame_that_is_cut_off_is_a_failure_and_not_an_end(void **state)
{
	auto_buf struct buf payload = BUF_INIT(WIRE_PAYLOAD_MAX);
	enum wire_type type;
	struct err err = {0};
	int ends[2];

	(void)state;
	open_pair(ends);
	assert_int_equal(write(ends[0], "\0\0\0\x09Labc", 8), 8);
	assert_int_equal(close(ends[0]), 0);
	check_err(wire_receive(ends[1], NULL, &type, &payload, &err), &err, ERR_UNAVAILABLE);
	assert_int_equal(close(ends[1]), 0);
}

static void a_frame_above_the_ceiling_is_refused_before_it_is_read(void **state)
{
	auto_buf struct buf payload = BUF_INIT(WIRE_PAYLOAD_MAX);
	enum wire_type type;
	struct err err = {0};
	int ends[2];

	(void)state;
	open_pair(ends);
	assert_int_equal(write(ends[0], "\xff\xff\xff\xffL", 5), 5);
	check_err(wire_receive(ends[1], NULL, &type, &payload, &err), &err, ERR_CORRUPT);
	assert_int_equal(close(ends[0]), 0);
	assert_int_equal(close(ends[1]), 0);
}

static void sending_to_one_who_is_gone_is_unavailable_and_no_signal(void **state)
{
	struct err err = {0};
	int ends[2];

	(void)state;
	open_pair(ends);
	assert_int_equal(close(ends[1]), 0);
	check_err(wire_send(ends[0], WIRE_LOG, STR("x"), &err), &err, ERR_UNAVAILABLE);
	assert_int_equal(close(ends[0]), 0);
}

static void a_cancel_ends_the_waiting(void **state)
{
	auto_buf struct buf payload = BUF_INIT(WIRE_PAYLOAD_MAX);
	enum wire_type type;
	struct cancel cancel;
	struct err err = {0};
	int ends[2];

	(void)state;
	open_pair(ends);
	check_ok(cancel_init(&cancel, &err), &err);
	cancel_raise(&cancel);
	check_err(wire_receive(ends[1], &cancel, &type, &payload, &err), &err, ERR_CANCELLED);
	cancel_done(&cancel);
	assert_int_equal(close(ends[0]), 0);
	assert_int_equal(close(ends[1]), 0);
}

static void an_error_keeps_kind_words_and_exit_code(void **state)
{
	auto_buf struct buf text = BUF_INIT(WIRE_PAYLOAD_MAX);
	AUTO(json) json_t *value = NULL;
	struct err why = {0};
	struct err err = {0};
	int exit_code = 0;

	(void)state;
	(void)err_set(&why, ERR_STEP, "the command ended with exit code 7");
	value = wire_error(&why, 7);
	check_ok(json_format(value, &text, &err), &err);
	check_err(wire_error_parse(buf_str(&text), &exit_code, &err), &err, ERR_STEP);
	assert_string_equal(err.text, why.text);
	assert_int_equal(exit_code, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_arrive_as_they_were_sent),
		cmocka_unit_test(a_frame_that_is_cut_off_is_a_failure_and_not_an_end),
		cmocka_unit_test(a_frame_above_the_ceiling_is_refused_before_it_is_read),
		cmocka_unit_test(sending_to_one_who_is_gone_is_unavailable_and_no_signal),
		cmocka_unit_test(a_cancel_ends_the_waiting),
		cmocka_unit_test(an_error_keeps_kind_words_and_exit_code),
	};

	return cmocka_run_group_tests_name("bake/wire", tests, NULL, NULL);
}
