/* SPDX-License-Identifier: Apache-2.0 */
/* share_test.c - writers of several threads in one commit, seen from meta.h. */
#include "layers/meta.h"
#include "layers/store_priv.h"
#include "tests/layers/store_fixture.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>

#define WRITERS (SHARE_TURNS_MAX + 2)
#define THREADS 4
#define ROUNDS 25

/* A thread that writes one record, and then aborts or commits. */
struct writer {
	struct store *store;
	pthread_t thread;
	char key[32];
	bool aborts;
	int result; /* of its commit */
	atomic_uint committed;
	struct err err;
};

static void count_commit(void *ctx)
{
	(void)atomic_fetch_add((atomic_uint *)ctx, 1);
}

static int put_one(struct meta *meta, const char *key, struct err *err)
{
	AUTO(json) json_t *record = json_pack("{s:i}", "v", 1);

	return meta_put(meta, "t", str_of(key), record, err);
}

static void *write_one(void *ctx)
{
	struct writer *writer = ctx;
	AUTO(meta) struct meta *meta = NULL;

	writer->result = -1;
	if (meta_begin(writer->store, META_SHARED, &meta, &writer->err) < 0 ||
	    put_one(meta, writer->key, &writer->err) < 0)
		return NULL;
	meta_on_commit(meta, count_commit, &writer->committed);
	writer->result = writer->aborts ? 0 : meta_commit(steal_ptr(&meta), &writer->err);
	return NULL;
}

static void start(struct store *store, struct writer *writers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		writers[i].store = store;
		(void)snprintf(writers[i].key, sizeof(writers[i].key), "writer-%zu", i);
		assert_int_equal(pthread_create(&writers[i].thread, NULL, write_one, &writers[i]),
				 0);
	}
}

static void join(const struct writer *writers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
}

/* Until so many threads wait for who leads. */
static void await_waiting(struct store *store, size_t count)
{
	size_t waiting = 0;

	while (waiting < count) {
		(void)poll(NULL, 0, 1);
		lock_take(&store->share.lock);
		waiting = store->share.waiting;
		lock_drop(&store->share.lock);
	}
}

static bool is_there(struct store *store, const char *key)
{
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};
	int found;

	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	found = meta_has(meta, "t", str_of(key), &err);
	assert_true(found >= 0);
	return found == 1;
}

/* Lead, with these waiting. */
static struct meta *lead(struct store *store, struct writer *writers, size_t count)
{
	struct meta *meta;
	struct err err = {0};

	check_ok(meta_begin(store, META_SHARED, &meta, &err), &err);
	check_ok(put_one(meta, "leader", &err), &err);
	start(store, writers, count);
	await_waiting(store, count);
	return meta;
}

static void who_waits_is_in_the_next_commit(void **state)
{
	struct store *store = ((struct store_fixture *)*state)->store;
	struct writer writers[3] = {0};
	uint64_t before = meta_generation(store);
	struct meta *meta = lead(store, writers, 3);
	struct err err = {0};

	check_ok(meta_commit(meta, &err), &err);
	join(writers, 3);
	assert_int_equal(meta_generation(store), before + 1);
	assert_true(is_there(store, "leader"));
	for (size_t i = 0; i < 3; i++) {
		check_ok(writers[i].result, &writers[i].err);
		assert_int_equal(atomic_load(&writers[i].committed), 1);
		assert_true(is_there(store, writers[i].key));
	}
}

static void who_aborts_leaves_nothing_and_harms_nobody(void **state)
{
	struct store *store = ((struct store_fixture *)*state)->store;
	struct writer writers[3] = {{.aborts = true}, {.aborts = false}, {.aborts = true}};
	struct meta *meta = lead(store, writers, 3);
	struct err err = {0};

	check_ok(meta_commit(meta, &err), &err);
	join(writers, 3);
	assert_true(is_there(store, "leader"));
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(is_there(store, writers[i].key), !writers[i].aborts);
		assert_int_equal(atomic_load(&writers[i].committed), !writers[i].aborts);
	}
}

static void a_leader_that_aborts_takes_nobody_along(void **state)
{
	struct store *store = ((struct store_fixture *)*state)->store;
	struct writer writers[2] = {0};

	meta_abort(lead(store, writers, 2));
	join(writers, 2);
	assert_false(is_there(store, "leader"));
	for (size_t i = 0; i < 2; i++)
		assert_true(is_there(store, writers[i].key));
}

static void a_commit_takes_only_so_many(void **state)
{
	struct store *store = ((struct store_fixture *)*state)->store;
	struct writer writers[WRITERS] = {0};
	uint64_t before = meta_generation(store);
	struct meta *meta = lead(store, writers, WRITERS);
	struct err err = {0};

	check_ok(meta_commit(meta, &err), &err);
	join(writers, WRITERS);
	assert_int_equal(meta_generation(store), before + 2);
	for (size_t i = 0; i < WRITERS; i++)
		assert_true(is_there(store, writers[i].key));
}

static void a_commit_that_fails_fails_for_all(void **state)
{
	struct store *store = ((struct store_fixture *)*state)->store;
	struct writer writers[3] = {{.aborts = false}, {.aborts = true}, {.aborts = false}};
	struct meta *meta = lead(store, writers, 3);
	struct rlimit limit;
	struct rlimit small;
	struct err err = {0};

	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	small = (struct rlimit){4096, limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	check_err(meta_commit(meta, &err), &err, ERR_UNSUPPORTED);
	join(writers, 3);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_false(is_there(store, "leader"));
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(writers[i].result, writers[i].aborts ? 0 : -1);
		assert_int_equal(writers[i].err.kind,
				 writers[i].aborts ? ERR_NONE : ERR_UNSUPPORTED);
		assert_int_equal(atomic_load(&writers[i].committed), 0);
		assert_false(is_there(store, writers[i].key));
	}
}

/* Read a number, and write the next one. */
static int add_one(struct store *store, bool aborts, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	AUTO(json) json_t *record = NULL;
	json_int_t number = 0;
	int found;

	if (meta_begin(store, META_SHARED, &meta, err) < 0)
		return -1;
	found = meta_get(meta, "t", STR("number"), &record, err);
	if (found < 0)
		return -1;
	if (found == 1)
		number = json_integer_value(json_object_get(record, "number"));
	json_decref(record);
	record = json_pack("{s:i, s:I}", "v", 1, "number", number + 1);
	if (meta_put(meta, "t", STR("number"), record, err) < 0)
		return -1;
	return aborts ? 0 : meta_commit(steal_ptr(&meta), err);
}

static void *add_many(void *ctx)
{
	struct writer *writer = ctx;

	for (int i = 0; i < ROUNDS && writer->result == 0; i++)
		writer->result = add_one(writer->store, i % 5 == 4, &writer->err);
	return NULL;
}

static void each_sees_what_those_before_it_wrote(void **state)
{
	struct store *store = ((struct store_fixture *)*state)->store;
	struct writer writers[THREADS] = {0};
	AUTO(meta) struct meta *meta = NULL;
	AUTO(json) json_t *record = NULL;
	struct err err = {0};

	for (size_t i = 0; i < THREADS; i++) {
		writers[i].store = store;
		assert_int_equal(pthread_create(&writers[i].thread, NULL, add_many, &writers[i]),
				 0);
	}
	join(writers, THREADS);
	for (size_t i = 0; i < THREADS; i++)
		check_ok(writers[i].result, &writers[i].err);
	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	assert_int_equal(meta_get(meta, "t", STR("number"), &record, &err), 1);
	assert_int_equal(json_integer_value(json_object_get(record, "number")),
			 THREADS * (ROUNDS - ROUNDS / 5));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_waits_is_in_the_next_commit),
		TEST(who_aborts_leaves_nothing_and_harms_nobody),
		TEST(a_leader_that_aborts_takes_nobody_along),
		TEST(a_commit_takes_only_so_many),
		TEST(a_commit_that_fails_fails_for_all),
		TEST(each_sees_what_those_before_it_wrote),
	};

	return cmocka_run_group_tests_name("layers/share", tests, NULL, NULL);
}
