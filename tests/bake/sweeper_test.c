/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/sweeper.h"

#include "tests/layers/store_fixture.h"

#include <stdio.h>

#define GRACE_MS 60000

static void set_aside(struct store *store, unsigned dirs)
{
	int tmpfd = store_dirfd(store, STORE_TMP);
	struct err err = {0};

	for (unsigned i = 0; i < dirs; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "%u", i);
		assert_int_equal(mkdirat(tmpfd, name, 0700), 0);
		check_ok(store_set_aside(store, tmpfd, name, &err), &err);
	}
}

static size_t in_trash(struct store *store)
{
	auto_dir DIR *dir = NULL;
	const struct dirent *entry;
	struct err err = {0};
	size_t n = 0;

	check_ok(fd_open_dir(store_dirfd(store, STORE_TRASH), ".", &dir, &err), &err);
	while ((entry = readdir(dir)))
		n += !fd_is_dots(entry->d_name);
	return n;
}

static void it_sweeps_at_once_and_when_it_is_woken(void **state)
{
	struct store_fixture *fixture = *state;
	struct sweeper *sweeper;
	struct err err = {0};

	set_aside(fixture->store, 3);
	check_ok(sweeper_start(fixture->store, &sweeper, &err), &err);
	set_aside(fixture->store, 30);
	sweeper_wake(sweeper);
	sweeper_stop(sweeper, GRACE_MS);
	assert_int_equal(in_trash(fixture->store), 0);
}

static void without_grace_it_stops_and_the_next_one_goes_on(void **state)
{
	struct store_fixture *fixture = *state;
	struct sweeper *sweeper;
	struct err err = {0};

	set_aside(fixture->store, 500);
	check_ok(sweeper_start(fixture->store, &sweeper, &err), &err);
	sweeper_stop(sweeper, 0);
	check_ok(sweeper_start(fixture->store, &sweeper, &err), &err);
	sweeper_stop(sweeper, GRACE_MS);
	assert_int_equal(in_trash(fixture->store), 0);
	sweeper_stop(NULL, 0);
}

#define STORE_TEST(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(it_sweeps_at_once_and_when_it_is_woken),
		STORE_TEST(without_grace_it_stops_and_the_next_one_goes_on),
	};

	return cmocka_run_group_tests_name("bake/sweeper", tests, NULL, NULL);
}
