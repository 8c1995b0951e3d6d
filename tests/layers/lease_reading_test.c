/* SPDX-License-Identifier: Apache-2.0 */
/* What is being read stays, however many read it, and nothing else does. */
#include "layers/lease_reading.h"
#include "tests/layers/collecting.h"

#define NAMES 10000 /* that one takes */

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

static void what_is_read_stays_until_nobody_reads_it(void **state)
{
	struct store_fixture *fixture = *state;
	struct store *store = fixture->store;
	struct digest blob = put(store, "it is read");
	struct lease_reading *first = begin(store, &blob);
	struct lease_reading *second = begin(store, &blob);

	assert_int_equal(count_leases(store), 1);
	collect_unleased(store);
	assert_true(has_blob(store, &blob));
	lease_reading_end(first);
	collect_unleased(store);
	assert_true(has_blob(store, &blob));
	lease_reading_end(second);
	assert_int_equal(count_leases(store), 0);
	collect_unleased(store);
	assert_false(has_blob(store, &blob));
}

/* A slow reader does not make the store grow. */
static void what_is_put_meanwhile_is_not_held(void **state)
{
	struct store_fixture *fixture = *state;
	struct store *store = fixture->store;
	struct digest blob = put(store, "it is read");
	struct lease_reading *reading = begin(store, &blob);
	struct digest later = put(store, "nobody reads it");

	collect_unleased(store);
	assert_true(has_blob(store, &blob));
	assert_false(has_blob(store, &later));
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
	assert_int_equal(count_leases(store), 1);
	last = begin(store, &blob);
	assert_int_equal(count_leases(store), 2);
	lease_reading_end(first);
	assert_int_equal(count_leases(store), 1);
	lease_reading_end(last);
	assert_int_equal(count_leases(store), 0);
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
