/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/ring.h"
#include "tests/check.h"

#include <pthread.h>
#include <string.h>

#define STREAM_BYTES ((size_t)3 * 1024 * 1024 + 17)

static char byte_at(size_t i)
{
	return (char)(i * 7 + i / 251);
}

static void *write_stream(void *ctx)
{
	struct ring *ring = ctx;
	char piece[1000];
	struct err err;

	for (size_t at = 0; at < STREAM_BYTES;) {
		size_t n = 1 + at % sizeof(piece);

		if (n > STREAM_BYTES - at)
			n = STREAM_BYTES - at;
		for (size_t i = 0; i < n; i++)
			piece[i] = byte_at(at + i);
		if (ring->sink.write(&ring->sink, (struct str){piece, n}, &err) < 0)
			return (void *)1;
		at += n;
	}
	ring_finish(ring);
	return NULL;
}

static void bytes_come_out_as_they_went_in(void **state)
{
	struct ring ring;
	struct err err = {0};
	struct str got;
	pthread_t writer;
	size_t at = 0;
	int result;

	(void)state;
	check_ok(ring_init(&ring, 4096, &err), &err);
	assert_int_equal(pthread_create(&writer, NULL, write_stream, &ring), 0);
	while ((result = ring.source.read(&ring.source, &got, &err)) == 1) {
		assert_true(got.len > 0 && got.len <= 4096);
		for (size_t i = 0; i < got.len; i++, at++)
			assert_int_equal(got.ptr[i], byte_at(at));
	}
	assert_int_equal(result, 0);
	assert_int_equal(at, STREAM_BYTES);
	assert_int_equal(pthread_join(writer, NULL), 0);
	ring_done(&ring);
}

static void a_writer_that_fails_is_heard_by_the_reader(void **state)
{
	struct err why = {0};
	struct err err = {0};
	struct ring ring;
	struct str got;

	(void)state;
	check_ok(ring_init(&ring, 64, &err), &err);
	check_ok(ring.sink.write(&ring.sink, STR("lost"), &err), &err);
	(void)err_set(&why, ERR_REMOTE, "cut off");
	ring_fail(&ring, &why);
	check_err(ring.source.read(&ring.source, &got, &err), &err, ERR_REMOTE);
	assert_string_equal(err.text, "cut off");
	ring_done(&ring);
}

static void *give_up(void *ctx)
{
	struct err why = {0};

	(void)err_set(&why, ERR_CORRUPT, "bad bytes");
	ring_abandon(ctx, &why);
	return NULL;
}

static void a_reader_that_gives_up_frees_a_blocked_writer(void **state)
{
	struct err err = {0};
	struct ring ring;
	pthread_t reader;

	(void)state;
	check_ok(ring_init(&ring, 4, &err), &err);
	assert_int_equal(pthread_create(&reader, NULL, give_up, &ring), 0);
	check_err(ring.sink.write(&ring.sink, STR("more than fits"), &err), &err, ERR_CORRUPT);
	assert_int_equal(pthread_join(reader, NULL), 0);
	ring_done(&ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_come_out_as_they_went_in),
		cmocka_unit_test(a_writer_that_fails_is_heard_by_the_reader),
		cmocka_unit_test(a_reader_that_gives_up_frees_a_blocked_writer),
	};

	return cmocka_run_group_tests_name("layers/ring", tests, NULL, NULL);
}
