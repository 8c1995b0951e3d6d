/* SPDX-License-Identifier: Apache-2.0 */
/* What is being read stays, however many read it, and nothing else does. */
#include "layers/blob.h"
#include "layers/collect.h"
#include "layers/lease_reading.h"
#include "tests/layers/store_fixture.h"

#define NAMES 10000 /* that one takes */

static int leases(struct store *store)
{
	auto_dir DIR *dir = NULL;
	const struct dirent *entry;
	struct err err = {0};
	int count = 0;

	check_ok(fd_open_dir(store_dirfd(store, STORE_RUN), "leases", &dir, &err), &err);
	while ((entry = readdir(dir)))
		count += !fd_is_dots(entry->d_name);
	return count;
}

static struct lease_reading *begin(struct store *store, const struct digest *blob)
{
	struct lease_reading *reading;
	struct err err = {0};

	check_ok(lease_reading_begin(store, blob, &reading, &err), &err);
	return reading;
}

static struct digest put(struct store *store, const char *text)
{
	struct digest digest;
	struct err err = {0};

	check_ok(blob_put(store, str_of(text), &digest, &err), &err);
	return digest;
}

static int names(struct str document, reach_add_fn *add, void *ctx, struct err *err)
{
	(void)document;
	(void)add;
	(void)ctx;
	(void)err;
	return 0;
}

/* All that no lease holds goes. */
static void collect(struct store *store)
{
	const struct collect_options options = {.names = names};
	AUTO(collector) struct collector *collector = NULL;
	struct collect_result result;
	struct meta *meta;
	struct err err = {0};

	check_ok(collect_open(store, &options, &collector, &err), &err);
	check_ok(collect_mark(collector, &meta, &err), &err);
	check_ok(collect_sweep(collector, &result, &err), &err);
}

static bool has(struct store *store, const struct digest *digest)
{
	struct blob_info info;
	struct err err = {0};

	return blob_find(store, digest, &info, &err) == 1;
}

static void what_is_read_stays_until_nobody_reads_it(void **state)
{
	struct store_fixture *fixture = *state;
	struct store *store = fixture->store;
	struct digest blob = put(store, "it is read");
	struct lease_reading *first = begin(store, &blob);
	struct lease_reading *second = begin(store, &blob);

	assert_int_equal(leases(store), 1);
	collect(store);
	assert_true(has(store, &blob));
	lease_reading_end(first);
	collect(store);
	assert_true(has(store, &blob));
	lease_reading_end(second);
	assert_int_equal(leases(store), 0);
	collect(store);
	assert_false(has(store, &blob));
}

/* A slow reader does not make the store grow. */
static void what_is_put_meanwhile_is_not_held(void **state)
{
	struct store_fixture *fixture = *state;
	struct store *store = fixture->store;
	struct digest blob = put(store, "it is read");
	struct lease_reading *reading = begin(store, &blob);
	struct digest later = put(store, "nobody reads it");

	collect(store);
	assert_true(has(store, &blob));
	assert_false(has(store, &later));
	lease_reading_end(reading);
}

static void a_lease_takes_so_many_names(void **state)
{
	struct store_fixture *fixture = *state;
	struct store *store = fixture->store;
	struct digest blob = put(store, "it is read");
	struct lease_reading *first = begin(store, &blob);
	struct lease_reading *last = NULL;

	for (int i = 1; i < NAMES; i++)
		lease_reading_end(begin(store, &blob));
	assert_int_equal(leases(store), 1);
	last = begin(store, &blob);
	assert_int_equal(leases(store), 2);
	lease_reading_end(first);
	assert_int_equal(leases(store), 1);
	lease_reading_end(last);
	assert_int_equal(leases(store), 0);
}

#define STORE_TEST(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(what_is_read_stays_until_nobody_reads_it),
		STORE_TEST(what_is_put_meanwhile_is_not_held),
		STORE_TEST(a_lease_takes_so_many_names),
	};

	return cmocka_run_group_tests_name("layers/lease_reading", tests, NULL, NULL);
}
