/* SPDX-License-Identifier: Apache-2.0 */
/* Room on a small file system, and in a small map. */
#include "registry/vacancy.h"
#include "tests/layers/small_fixture.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>

#define MIB ((uint64_t)1024 * 1024)

struct maker {
	struct store_fixture *fixture;
	int asked;
	bool gives;
};

/* What can go is a file beside the store. */
static void fill(const struct store_fixture *fixture, off_t bytes)
{
	char path[64];
	auto_close int fd = -1;

	(void)snprintf(path, sizeof(path), "%s/filler", fixture->parent);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(posix_fallocate(fd, 0, bytes), 0);
}

static int make_room(void *ctx, struct err *err)
{
	struct maker *maker = ctx;

	(void)err;
	maker->asked++;
	if (maker->gives)
		fill(maker->fixture, 1);
	return maker->gives;
}

static void what_has_no_room_is_refused_until_there_is_some(void **state)
{
	struct maker maker = {.fixture = *state};
	struct vacancy vacancy;
	struct err err = {0};

	vacancy_init(&vacancy, maker.fixture->store, make_room, &maker);
	check_ok(vacancy_ask(&vacancy, 1 * MIB, &err), &err);
	assert_int_equal(maker.asked, 0);
	fill(maker.fixture, 12 * MIB);
	check_ok(vacancy_check(&vacancy, &err), &err);
	check_err(vacancy_ask(&vacancy, 10 * MIB, &err), &err, ERR_FULL);
	assert_int_equal(maker.asked, 1);
	check_err(vacancy_check(&vacancy, &err), &err, ERR_FULL);
	check_ok(vacancy_ask(&vacancy, 1, &err), &err); /* a small one fits all the same */
	check_err(vacancy_check(&vacancy, &err), &err, ERR_FULL);
	fill(maker.fixture, 1);
	check_ok(vacancy_check(&vacancy, &err), &err);
	fill(maker.fixture, 12 * MIB);
	check_ok(vacancy_check(&vacancy, &err), &err); /* it was forgotten */
	vacancy_done(&vacancy);
}

static void room_is_made_where_something_can_go(void **state)
{
	struct maker maker = {.fixture = *state, .gives = true};
	struct vacancy vacancy;
	struct err err = {0};

	vacancy_init(&vacancy, maker.fixture->store, make_room, &maker);
	fill(maker.fixture, 12 * MIB);
	check_ok(vacancy_ask(&vacancy, 10 * MIB, &err), &err);
	assert_int_equal(maker.asked, 1);
	check_ok(vacancy_check(&vacancy, &err), &err);
	vacancy_done(&vacancy);
}

static void what_was_unreasonable_is_not_waited_for(void **state)
{
	struct store_fixture *fixture = *state;
	struct vacancy vacancy;
	struct err err = {0};

	vacancy_init(&vacancy, fixture->store, NULL, NULL);
	check_err(vacancy_ask(&vacancy, UINT64_MAX / 2, &err), &err, ERR_FULL);
	assert_int_equal(vacancy.lacking, VACANCY_LACKING_MAX);
	vacancy_done(&vacancy);
}

static int open_small(void **state)
{
	return small_fixture_open(state, "size=28m,mode=0700");
}

#define SMALL_TEST(test) cmocka_unit_test_setup_teardown(test, open_small, small_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SMALL_TEST(what_has_no_room_is_refused_until_there_is_some),
		SMALL_TEST(room_is_made_where_something_can_go),
		SMALL_TEST(what_was_unreasonable_is_not_waited_for),
	};

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 125; /* needs root */
	return cmocka_run_group_tests_name("registry/vacancy", tests, NULL, NULL);
}
