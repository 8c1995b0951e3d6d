/* SPDX-License-Identifier: Apache-2.0 */
/* Many who put blobs at one time keep nobody from collecting, and lose nothing. */
#include "layers/lease_shared.h"
#include "tests/layers/collecting.h"

#include <fcntl.h>
#include <sys/file.h>

/* Whether a collector would have to wait. */
static bool is_in_use(struct store *store)
{
	auto_close int fd = openat(store_dirfd(store, STORE_RUN), ".", O_RDONLY | O_CLOEXEC);

	return flock(fd, LOCK_EX | LOCK_NB) < 0;
}

static struct lease_shared *join(struct store *store)
{
	struct lease_shared *shared;
	struct err err = {0};

	check_ok(lease_shared_join(store, &shared, &err), &err);
	return shared;
}

static void who_is_alone_keeps_collectors_waiting(void **state)
{
	struct store_fixture *fixture = *state;
	struct lease_shared *alone = join(fixture->store);

	assert_true(is_in_use(fixture->store));
	lease_shared_leave(alone);
	assert_false(is_in_use(fixture->store));
}

static void who_comes_while_others_are_there_rests_with_them(void **state)
{
	struct store_fixture *fixture = *state;
	struct store *store = fixture->store;
	struct lease_shared *first = join(store);
	struct lease_shared *second = join(store);
	struct lease_shared *third = join(store);
	struct digest before;
	struct digest held;
	struct err err = {0};

	assert_ptr_not_equal(first, second);
	assert_ptr_equal(second, third);
	assert_true(is_in_use(store));
	lease_shared_leave(first);
	assert_false(is_in_use(store));
	check_ok(blob_put(store, STR("put by the third"), &held, &err), &err);
	lease_shared_leave(second);
	assert_int_equal(count_leases(store), 1);
	collect_unleased(store);
	assert_true(has_blob(store, &held));
	lease_shared_leave(third);
	assert_int_equal(count_leases(store), 0);
	check_ok(blob_put(store, STR("put by nobody"), &before, &err), &err);
	collect_unleased(store);
	assert_false(has_blob(store, &held) || has_blob(store, &before));
}

#define STORE_TEST(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(who_is_alone_keeps_collectors_waiting),
		STORE_TEST(who_comes_while_others_are_there_rests_with_them),
	};

	return cmocka_run_group_tests_name("layers/lease_shared", tests, NULL, NULL);
}
