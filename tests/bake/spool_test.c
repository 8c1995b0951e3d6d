/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/spool.h"
#include "tests/check.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define MAX ((uint64_t)64) /* so that a log is short, and its end turns often */
#define HALF (MAX / 2)

/* The letter that stands at a place of every log here. */
static char letter(uint64_t at)
{
	return (char)('a' + at % 26);
}

static void put(struct spool *spool, size_t count)
{
	char bytes[512];
	struct err err = {0};

	assert_true(count <= sizeof(bytes));
	for (size_t i = 0; i < count; i++)
		bytes[i] = letter(spool->written + i);
	check_ok(spool->sink.write(&spool->sink, (struct str){bytes, count}, &err), &err);
}

static void open_spool(struct spool *spool)
{
	int fd = memfd_create("spool", MFD_CLOEXEC);

	assert_true(fd >= 0);
	spool_init(spool, fd, MAX);
}

static void add_letters(uint64_t from, uint64_t to, struct buf *out)
{
	struct err err = {0};

	for (; from < to; from++) {
		char c = letter(from);

		check_ok(buf_add(out, (struct str){&c, 1}, &err), &err);
	}
}

static void check_kept(const struct spool *spool)
{
	auto_buf struct buf expected = BUF_INIT((size_t)1024);
	auto_buf struct buf got = BUF_INIT((size_t)1024);
	struct buf_sink sink = BUF_SINK(&got);
	char note[SPOOL_NOTE_MAX];
	uint64_t written = spool->written;
	struct err err = {0};

	if (written <= MAX) {
		add_letters(0, written, &expected);
	} else {
		add_letters(0, HALF, &expected);
		check_ok(buf_add(&expected, spool_note(written - MAX, note), &err), &err);
		add_letters(written - HALF, written, &expected);
	}
	check_ok(spool_copy(spool, &sink.sink, &err), &err);
	assert_true(str_equal(buf_str(&got), buf_str(&expected)));
	assert_int_equal(spool_kept(spool), expected.len);
}

static void a_log_is_whole_or_keeps_its_beginning_and_its_end(void **state)
{
	(void)state;
	for (size_t step = 1; step < 100; step += 7) {
		struct spool spool;

		open_spool(&spool);
		check_kept(&spool);
		for (int i = 0; i < 40; i++) {
			put(&spool, step);
			check_kept(&spool);
		}
		assert_int_equal(close(spool.fd), 0);
	}
}

static void read_some(const struct spool *spool, uint64_t *at, uint64_t *out_lost, struct buf *out)
{
	char piece[1024];
	struct err err = {0};
	ssize_t n;

	*out_lost = 0;
	do {
		uint64_t lost;

		n = spool_read(spool, at, piece, sizeof(piece), &lost, &err);
		*out_lost += lost;
		check_ok(n < 0 ? -1 : buf_add(out, (struct str){piece, (size_t)n}, &err), &err);
	} while (n > 0);
}

static void one_who_keeps_up_loses_nothing(void **state)
{
	auto_buf struct buf got = BUF_INIT((size_t)4096);
	auto_buf struct buf expected = BUF_INIT((size_t)4096);
	struct spool spool;
	uint64_t at = 0;
	uint64_t lost;

	(void)state;
	open_spool(&spool);
	for (int i = 0; i < 50; i++) {
		put(&spool, 31);
		read_some(&spool, &at, &lost, &got);
		assert_int_equal(lost, 0);
	}
	add_letters(0, spool.written, &expected);
	assert_true(str_equal(buf_str(&got), buf_str(&expected)));
	assert_int_equal(close(spool.fd), 0);
}

static void one_who_is_slow_is_told_what_he_lost(void **state)
{
	auto_buf struct buf got = BUF_INIT((size_t)4096);
	auto_buf struct buf expected = BUF_INIT((size_t)4096);
	struct spool spool;
	uint64_t at = 0;
	uint64_t lost;

	(void)state;
	open_spool(&spool);
	put(&spool, 50);
	read_some(&spool, &at, &lost, &got); /* 0 to 49, of which 32 to 49 are not kept */
	put(&spool, 200);
	read_some(&spool, &at, &lost, &got);
	assert_int_equal(lost, 250 - HALF - 50);
	add_letters(0, 50, &expected);
	add_letters(250 - HALF, 250, &expected);
	assert_true(str_equal(buf_str(&got), buf_str(&expected)));
	assert_int_equal(at, 250);
	assert_int_equal(close(spool.fd), 0);
}

static void a_file_that_shrank_is_an_error(void **state)
{
	struct spool spool;
	char piece[64];
	uint64_t at = 0;
	uint64_t lost;
	struct err err = {0};

	(void)state;
	open_spool(&spool);
	put(&spool, 10);
	assert_int_equal(ftruncate(spool.fd, 0), 0);
	check_err((int)spool_read(&spool, &at, piece, sizeof(piece), &lost, &err), &err, ERR_OS);
	assert_int_equal(close(spool.fd), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_log_is_whole_or_keeps_its_beginning_and_its_end),
		cmocka_unit_test(one_who_keeps_up_loses_nothing),
		cmocka_unit_test(one_who_is_slow_is_told_what_he_lost),
		cmocka_unit_test(a_file_that_shrank_is_an_error),
	};

	return cmocka_run_group_tests_name("bake/spool", tests, NULL, NULL);
}
