/* SPDX-License-Identifier: Apache-2.0 */
/* A body on its way from the thread that receives it to the one that reads it. */
#include "api/inlet.h"
#include "layers/base/thread.h"
#include "tests/check.h"

#include <poll.h>
#include <stdatomic.h>

struct reader {
	struct inlet inlet;
	atomic_int rooms;
	size_t bytes;
	size_t pieces;
	int end; /* of the last read */
	struct err err;
};

static void reader_has_room(struct inlet *inlet)
{
	atomic_fetch_add(&((struct reader *)inlet->ctx)->rooms, 1);
}

static void *reader_run(void *ctx)
{
	struct reader *reader = ctx;
	struct source *source = &reader->inlet.source;
	struct str piece;

	while ((reader->end = source->read(source, &piece, &reader->err)) == 1) {
		reader->bytes += piece.len;
		reader->pieces++;
	}
	return NULL;
}

/* All of it, as there comes room for it. */
static void offer_all(struct reader *reader, const char *bytes, size_t len)
{
	while (len > 0) {
		size_t n = inlet_offer(&reader->inlet, (struct str){bytes, len});

		bytes += n;
		len -= n;
		if (n == 0)
			(void)poll(NULL, 0, 1);
	}
}

static void start(struct reader *reader, pthread_t *thread)
{
	struct err err = {0};

	*reader = (struct reader){.end = 1};
	inlet_init(&reader->inlet, reader_has_room, reader);
	/* Nothing is taken until somebody reads, who then says that there is room. */
	assert_int_equal(inlet_offer(&reader->inlet, STR("x")), 0);
	check_ok(thread_start(thread, reader_run, reader, &err), &err);
	while (atomic_load(&reader->rooms) == 0)
		(void)poll(NULL, 0, 1);
}

static void a_body_is_read_in_large_pieces(void **state)
{
	static char bytes[3 * INLET_BYTES];
	struct reader reader;
	pthread_t thread;

	(void)state;
	start(&reader, &thread);
	for (size_t at = 0; at < sizeof(bytes); at += 4096)
		offer_all(&reader, bytes + at, 4096);
	offer_all(&reader, "rest", 4);
	inlet_finish(&reader.inlet);
	(void)pthread_join(thread, NULL);
	assert_int_equal(reader.end, 0);
	assert_int_equal(reader.bytes, sizeof(bytes) + 4);
	/* The memory's end may divide one. */
	assert_true(reader.pieces <= 2 * sizeof(bytes) / INLET_PIECE + 1);
	inlet_done(&reader.inlet);
}

static void what_came_before_a_failure_is_read(void **state)
{
	struct reader reader;
	pthread_t thread;

	(void)state;
	start(&reader, &thread);
	offer_all(&reader, "half", 4);
	inlet_fail(&reader.inlet, ERR_CANCELLED, "the client has gone");
	(void)pthread_join(thread, NULL);
	assert_int_equal(reader.end, -1);
	assert_int_equal(reader.err.kind, ERR_CANCELLED);
	assert_int_equal(reader.bytes, 4);
	inlet_done(&reader.inlet);
}

static void once_nobody_reads_all_is_taken(void **state)
{
	static char bytes[2 * INLET_BYTES];
	struct inlet inlet;
	struct reader reader = {0};

	(void)state;
	inlet_init(&inlet, reader_has_room, &reader);
	inlet_abandon(&inlet);
	assert_int_equal(inlet_offer(&inlet, (struct str){bytes, sizeof(bytes)}), sizeof(bytes));
	inlet_done(&inlet);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_body_is_read_in_large_pieces),
		cmocka_unit_test(what_came_before_a_failure_is_read),
		cmocka_unit_test(once_nobody_reads_all_is_taken),
	};

	return cmocka_run_group_tests_name("api/inlet", tests, NULL, NULL);
}
