/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/blob.h"
#include "layers/store_priv.h"
#include "tests/layers/blobs.h"
#include "tests/layers/store_check.h"
#include "tests/layers/store_fixture.h"

#include <pthread.h>

#define THREADS 6
#define ROUNDS 12
#define PIECE ((size_t)300 * 1024)

struct worker {
	struct store *store;
	uint32_t number; /* THREADS for all the same */
	pthread_t thread;
	struct err err;
};

static void fill(char *piece, uint32_t what)
{
	for (uint32_t i = 0; i < PIECE / sizeof(i); i++) {
		uint32_t word = what * 2654435761u + i;

		memcpy(piece + i * sizeof(i), &word, sizeof(word));
	}
}

/* Blobs of several pieces, some of which other threads write as well. */
static int write_blob(struct worker *worker, uint32_t round, char *piece)
{
	AUTO(blob_writer) struct blob_writer *writer = NULL;
	struct blob_info info;

	if (blob_writer_open(worker->store, &writer, &worker->err) < 0)
		return -1;
	for (uint32_t i = 0; i < 5; i++) {
		fill(piece, i % 2 ? round : round * 100 + worker->number);
		if (blob_writer_add(writer, (struct str){piece, PIECE}, &worker->err) < 0)
			return -1;
	}
	if (blob_writer_commit(writer, NULL, &info, &worker->err) < 0)
		return -1;
	return blob_check(worker->store, &info.digest, &worker->err);
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	auto_free char *piece = malloc(PIECE);

	for (uint32_t round = 0; round < ROUNDS; round++) {
		if (write_blob(worker, round, piece) < 0)
			break;
	}
	return NULL;
}

static void run(struct store *store, bool same)
{
	struct worker workers[THREADS] = {0};

	for (uint32_t i = 0; i < THREADS; i++) {
		workers[i].store = store;
		workers[i].number = same ? THREADS : i;
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
		assert_string_equal(workers[i].err.text, "");
	}
}

static void threads_write_their_own_blobs_at_once(void **state)
{
	struct store_fixture *fixture = *state;

	run(fixture->store, false);
	assert_int_equal(store_check(fixture->store), THREADS * ROUNDS);
}

static void threads_write_the_same_blobs_at_once(void **state)
{
	struct store_fixture *fixture = *state;

	run(fixture->store, true);
	assert_int_equal(store_check(fixture->store), ROUNDS);
}

static uint64_t commits(struct store *store)
{
	const struct store_blobs *blobs;
	MDB_envinfo info;
	struct err err = {0};

	check_ok(store_blobs(store, &blobs, &err), &err);
	assert_int_equal(mdb_env_info(blobs->db.env, &info), 0);
	return info.me_last_txnid;
}

static void a_small_blob_takes_one_commit(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest digest;
	uint64_t before = commits(fixture->store);
	struct err err = {0};

	check_ok(blob_put(fixture->store, STR("small"), &digest, &err), &err);
	assert_int_equal(commits(fixture->store) - before, 1);
}

/* A blob of twenty MiB in batches of four: five on the way, one at the end. */
static void a_large_blob_takes_a_commit_a_batch(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(blob_writer) struct blob_writer *writer = NULL;
	auto_free char *piece = malloc(PIECE);
	uint64_t before = commits(fixture->store);
	struct blob_info info;
	struct err err = {0};

	check_ok(blob_writer_open(fixture->store, &writer, &err), &err);
	for (uint32_t i = 0; i < 70; i++) {
		fill(piece, i);
		check_ok(blob_writer_add(writer, (struct str){piece, PIECE}, &err), &err);
	}
	check_ok(blob_writer_commit(writer, NULL, &info, &err), &err);
	assert_int_equal(commits(fixture->store) - before, 6);
}

#define STORE_TEST(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(threads_write_their_own_blobs_at_once),
		STORE_TEST(threads_write_the_same_blobs_at_once),
		STORE_TEST(a_small_blob_takes_one_commit),
		STORE_TEST(a_large_blob_takes_a_commit_a_batch),
	};

	return cmocka_run_group_tests_name("layers/batch", tests, NULL, NULL);
}
