/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/reserve.h"
#include "tests/layers/store_fixture.h"

#include <sys/stat.h>

/* Bytes of blocks that it takes; 0 where it is not there. */
static uint64_t reserved(const struct store_fixture *fixture)
{
	struct stat st;

	if (fstatat(store_dirfd(fixture->store, STORE_ROOT), "reserve", &st, 0) < 0)
		return 0;
	return (uint64_t)st.st_blocks * 512;
}

static void a_new_store_has_one_with_blocks(void **state)
{
	assert_true(reserved(*state) >= RESERVE_BYTES);
}

static void it_is_given_up_once_and_made_again(void **state)
{
	struct store_fixture *fixture = *state;
	struct err err = {0};

	assert_int_equal(reserve_give_up(fixture->store, &err), 1);
	assert_int_equal(reserved(fixture), 0);
	assert_int_equal(reserve_give_up(fixture->store, &err), 0);
	assert_int_equal(reserve_make(fixture->store, &err), 1);
	assert_int_equal(reserve_make(fixture->store, &err), 1);
	assert_true(reserved(fixture) >= RESERVE_BYTES);
}

#define reserve_test(name) \
	cmocka_unit_test_setup_teardown(name, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		reserve_test(a_new_store_has_one_with_blocks),
		reserve_test(it_is_given_up_once_and_made_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
