/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/rendezvous.h"
#include "tests/layers/store_fixture.h"

#include <fcntl.h>
#include <unistd.h>

static const struct digest key = {.bytes = {1, 2, 3}};

/* Whether run/step/ holds one name of the key, with this ending. */
static bool is_there(const struct store_fixture *fixture, const char *ending)
{
	char hex[DIGEST_HEX_MAX];
	char path[256];

	(void)snprintf(path, sizeof(path), "step/%s%s", digest_hex(&key, hex), ending);
	return faccessat(store_dirfd(fixture->store, STORE_RUN), path, F_OK, AT_SYMLINK_NOFOLLOW) ==
	       0;
}

static void claim(const struct store_fixture *fixture, int *out_lockfd, int *out_listener)
{
	struct err err = {0};
	int claimed = rendezvous_claim(fixture->store, &key, out_lockfd, out_listener, &err);

	check_ok(claimed, &err);
	assert_int_equal(claimed, 1);
}

static void one_claims_and_others_join(void **state)
{
	const struct store_fixture *fixture = *state;
	auto_close int lockfd = -1;
	auto_close int listener = -1;
	auto_close int joined = -1;
	int other_lock;
	int other_listener;
	struct err err = {0};

	assert_int_equal(rendezvous_join(fixture->store, &key, &joined, &err), 0);
	claim(fixture, &lockfd, &listener);
	assert_int_equal(rendezvous_claim(fixture->store, &key, &other_lock, &other_listener, &err),
			 0);
	assert_int_equal(rendezvous_join(fixture->store, &key, &joined, &err), 1);
}

static void nobody_joins_what_was_closed_and_nothing_stays(void **state)
{
	const struct store_fixture *fixture = *state;
	auto_close int lockfd = -1;
	auto_close int listener = -1;
	int joined;
	struct err err = {0};

	claim(fixture, &lockfd, &listener);
	rendezvous_close(fixture->store, &key);
	assert_int_equal(rendezvous_join(fixture->store, &key, &joined, &err), 0);
	rendezvous_leave(fixture->store, &key);
	assert_false(is_there(fixture, ""));
	assert_false(is_there(fixture, ".lock"));
}

static void a_sweep_spares_the_living(void **state)
{
	const struct store_fixture *fixture = *state;
	auto_close int lockfd = -1;
	auto_close int listener = -1;
	auto_close int joined = -1;
	struct err err = {0};

	claim(fixture, &lockfd, &listener);
	rendezvous_sweep(fixture->store);
	assert_true(is_there(fixture, ".lock"));
	assert_int_equal(rendezvous_join(fixture->store, &key, &joined, &err), 1);
}

static void a_sweep_removes_what_the_dead_left(void **state)
{
	const struct store_fixture *fixture = *state;
	int lockfd;
	int listener;

	rendezvous_sweep(fixture->store); /* nothing there yet */
	claim(fixture, &lockfd, &listener);
	assert_int_equal(close(lockfd), 0);
	assert_int_equal(close(listener), 0);
	assert_true(is_there(fixture, ""));
	rendezvous_sweep(fixture->store);
	assert_false(is_there(fixture, ""));
	assert_false(is_there(fixture, ".lock"));
	claim(fixture, &lockfd, &listener);
	assert_int_equal(close(lockfd), 0);
	assert_int_equal(close(listener), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_fixture_open, store_fixture_close)
	const struct CMUnitTest tests[] = {
		TEST(one_claims_and_others_join),
		TEST(nobody_joins_what_was_closed_and_nothing_stays),
		TEST(a_sweep_spares_the_living),
		TEST(a_sweep_removes_what_the_dead_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
