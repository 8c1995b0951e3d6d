/* SPDX-License-Identifier: Apache-2.0 */
/* Space that comes back, and blobs that stay: beside readers, and under kills. */
#include "layers/punch.h"

#include "layers/base/proc.h"
#include "layers/blob_priv.h"
#include "layers/collect.h"
#include "tests/layers/blobs.h"
#include "tests/layers/store_check.h"
#include "tests/layers/store_fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <time.h>

#define PIECE ((size_t)1024 * 1024)
#define KILLS 24
#define ROUNDS 10

static int no_names(struct str document, reach_add_fn *add, void *ctx, struct err *err)
{
	(void)document, (void)add, (void)ctx, (void)err;
	return 0;
}

/* Bytes that are like no others. */
static struct digest put(struct store *store, unsigned number, size_t len)
{
	auto_free char *bytes = calloc(1, len);
	unsigned random = number;
	struct digest digest;
	struct err err = {0};

	assert_non_null(bytes);
	for (size_t i = 0; i + sizeof(int) <= len; i += 512) {
		int word = rand_r(&random);

		memcpy(bytes + i, &word, sizeof(word));
	}
	check_ok(blob_put(store, (struct str){bytes, len}, &digest, &err), &err);
	return digest;
}

static void collect(struct store *store, const struct digest *roots, size_t count)
{
	const struct collect_options options = {.names = no_names};
	AUTO(collector) struct collector *collector = NULL;
	struct collect_result result;
	struct meta *meta;
	struct err err = {0};

	check_ok(collect_open(store, &options, &collector, &err), &err);
	check_ok(collect_mark(collector, &meta, &err), &err);
	for (size_t i = 0; i < count; i++)
		check_ok(collect_keep(collector, &roots[i], &err), &err);
	check_ok(collect_sweep(collector, &result, &err), &err);
}

static uint64_t punch(struct store *store)
{
	struct err err = {0};
	uint64_t bytes;

	check_ok(punch_store(store, NULL, &bytes, &err), &err);
	return bytes;
}

static void what_is_collected_comes_back_and_the_rest_stays(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest kept = put(fixture->store, 1, 3 * PIECE);
	struct punch_account account;
	struct err err = {0};

	(void)put(fixture->store, 2, 20 * PIECE);
	assert_int_equal(punch(fixture->store), 0);
	collect(fixture->store, &kept, 1);
	assert_true(punch(fixture->store) > 20 * PIECE - PUNCH_RESERVE - PIECE);
	check_ok(punch_measure(fixture->store, &account, &err), &err);
	assert_true(account.live_bytes > 3 * PIECE && account.live_bytes < 4 * PIECE);
	assert_true(account.disk_bytes < account.live_bytes + PUNCH_RESERVE + 2 * PIECE);
	assert_int_equal(store_check(fixture->store), 1);
	(void)store_fixture_reopen(fixture, false);
	assert_int_equal(store_check(fixture->store), 1);
}

/* A snapshot from before the collection still has every byte. */
static void what_a_reader_sees_is_not_punched(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest lost = put(fixture->store, 3, 10 * PIECE);
	const struct store_blobs *blobs;
	AUTO(txn) MDB_txn *txn = NULL;
	auto_free struct blob_ref *refs = calloc(BLOB_PAGE_REFS, sizeof(*refs));
	struct blob_entry entry;
	struct err err = {0};
	size_t count;

	assert_non_null(refs);
	check_ok(store_blobs(fixture->store, &blobs, &err), &err);
	check_ok(db_begin(&blobs->db, DB_READ, &txn, &err), &err);
	collect(fixture->store, NULL, 0);
	(void)put(fixture->store, 4, 1000);
	assert_true(punch(fixture->store) < PIECE);
	assert_int_equal(blob_entry_find(blobs, txn, &lost, &entry, &err), 1);
	check_ok(blob_entry_page(blobs, txn, &entry, 0, refs, &count, &err), &err);
	assert_int_equal(count, 10);
	for (size_t i = 0; i < count; i++) {
		struct blob_chunk chunk;
		struct digest found;
		struct str bytes;

		blob_ref_read(&refs[i], &chunk);
		assert_int_equal(chunk_find(blobs, txn, &chunk.id, &bytes, &err), 1);
		digest_of(bytes, &found);
		assert_true(digest_equal(&found, &chunk.id));
	}
	mdb_txn_abort(steal_ptr(&txn));
	assert_true(punch(fixture->store) > 10 * PIECE - PUNCH_RESERVE - PIECE);
	assert_int_equal(store_check(fixture->store), 1);
}

static void rounds_of_filling_and_collecting_do_not_make_the_file_grow(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest kept[ROUNDS];
	struct punch_account account;
	struct err err = {0};

	for (unsigned round = 0; round < ROUNDS; round++) {
		kept[round] = put(fixture->store, 100 * round, 2 * PIECE);
		for (unsigned i = 1; i <= 20; i++)
			(void)put(fixture->store, 100 * round + i, PIECE / 2 + (size_t)4096 * i);
		collect(fixture->store, kept, round + 1);
		(void)punch(fixture->store);
	}
	check_ok(punch_measure(fixture->store, &account, &err), &err);
	assert_true(account.disk_bytes < account.live_bytes * 13 / 10 + PUNCH_RESERVE);
	assert_int_equal(store_check(fixture->store), ROUNDS);
}

struct child {
	struct proc proc;
	FILE *lines;
};

static void start(struct store_fixture *fixture, unsigned seed, struct child *out)
{
	char number[16];
	const char *const argv[] = {STORE_COLLECTOR, fixture->path, number, NULL};
	struct proc_spec spec = {
		.path = STORE_COLLECTOR, .argv = argv, .fd_count = 3, .die_with_parent = true};
	auto_close int write_end = -1;
	struct err err = {0};
	int ends[2];

	(void)snprintf(number, sizeof(number), "%u", seed);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	write_end = ends[1];
	spec.fds[0] = -1;
	spec.fds[1] = write_end;
	spec.fds[2] = STDERR_FILENO;
	check_ok(proc_spawn(&spec, &out->proc, &err), &err);
	out->lines = fdopen(ends[0], "r");
	assert_non_null(out->lines);
}

static int blob_is_there(void *ctx, struct str key, const json_t *value, struct err *err)
{
	struct digest digest;

	(void)value;
	if (digest_parse(key, &digest, err) < 0)
		return -1;
	return blob_check(ctx, &digest, err);
}

static void check_written(struct store *store)
{
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};

	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	check_ok(meta_each(meta, "written", STR(""), blob_is_there, store, &err), &err);
}

/* Round after round, up to some moment of one. */
static void death_at_any_moment_loses_nothing_that_is_named(void **state)
{
	struct store_fixture *fixture = *state;
	unsigned random = (unsigned)time(NULL);

	print_message("seed %u\n", random);
	for (int i = 0; i < KILLS; i++) {
		struct timespec pause = {.tv_nsec = (long)(rand_r(&random) % 60000) * 1000};
		struct err err = {0};
		struct child child;
		char line[32];
		int status;

		start(fixture, (unsigned)rand_r(&random), &child);
		if (i % 3 == 0)
			assert_non_null(fgets(line, sizeof(line), child.lines));
		(void)ppoll(NULL, 0, &pause, NULL);
		assert_int_equal(kill(child.proc.pid, SIGKILL), 0);
		check_ok(proc_wait(&child.proc, -1, NULL, &status, &err), &err);
		(void)fclose(child.lines);
		assert_int_equal(status, 128 + SIGKILL);
		(void)store_fixture_reopen(fixture, false);
		(void)store_check(fixture->store);
		check_written(fixture->store);
	}
}

#define STORE_TEST(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(what_is_collected_comes_back_and_the_rest_stays),
		STORE_TEST(what_a_reader_sees_is_not_punched),
		STORE_TEST(rounds_of_filling_and_collecting_do_not_make_the_file_grow),
		STORE_TEST(death_at_any_moment_loses_nothing_that_is_named),
	};

	return cmocka_run_group_tests_name("layers/punch", tests, NULL, NULL);
}
