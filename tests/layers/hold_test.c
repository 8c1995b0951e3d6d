/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/hold.h"
#include "tests/check.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

struct place {
	char path[32];
	int fd;
};

/* What somebody else does between opening an entry and locking it. */
static struct {
	int dirfd; /* -1 for nothing */
	bool again;
} mover = {.dirfd = -1};

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);

int __wrap_flock(int fd, int operation)
{
	if (mover.dirfd >= 0) {
		assert_int_equal(renameat(mover.dirfd, "entry", mover.dirfd, "moved"), 0);
		if (mover.again)
			assert_int_equal(mkdirat(mover.dirfd, "entry", 0700), 0);
		mover.dirfd = -1;
	}
	return __real_flock(fd, operation);
}

static int open_place(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	assert_non_null(place);
	(void)snprintf(place->path, sizeof(place->path), "/tmp/hearth-test-XXXXXX");
	assert_non_null(mkdtemp(place->path));
	place->fd = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(place->fd, "entry", 0700), 0);
	*state = place;
	return 0;
}

static int close_place(void **state)
{
	struct place *place = *state;

	(void)unlinkat(place->fd, "pipe", 0);
	(void)unlinkat(place->fd, "moved", AT_REMOVEDIR);
	(void)unlinkat(place->fd, "entry", AT_REMOVEDIR);
	assert_int_equal(rmdir(place->path), 0);
	assert_int_equal(close(place->fd), 0);
	free(place);
	return 0;
}

static void what_is_held_is_nobody_elses_until_it_is_closed(void **state)
{
	const struct place *place = *state;
	struct err err = {0};
	int first;
	int second;

	assert_int_equal(hold_try(place->fd, "entry", &first, &err), 1);
	assert_int_equal(hold_try(place->fd, "entry", &second, &err), 0);
	assert_int_equal(second, -1);
	assert_int_equal(close(first), 0);
	assert_int_equal(hold_wait(place->fd, "entry", &second, &err), 1);
	assert_int_equal(close(second), 0);
}

static void what_is_shared_is_not_held_alone(void **state)
{
	const struct place *place = *state;
	struct err err = {0};
	int first;
	int second;
	int alone;

	assert_int_equal(hold_share(place->fd, "entry", &first, &err), 1);
	assert_int_equal(hold_share(place->fd, "entry", &second, &err), 1);
	assert_int_equal(hold_try(place->fd, "entry", &alone, &err), 0);
	assert_int_equal(close(first), 0);
	assert_int_equal(hold_try(place->fd, "entry", &alone, &err), 0);
	assert_int_equal(close(second), 0);
	assert_int_equal(hold_try(place->fd, "entry", &alone, &err), 1);
	assert_int_equal(hold_share(place->fd, "entry", &first, &err), 0);
	assert_int_equal(close(alone), 0);
}

static void a_hold_is_waited_for_and_ends_with_its_process(void **state)
{
	const struct place *place = *state;
	auto_close int hold = -1;
	struct err err = {0};
	int theirs;
	pid_t pid;

	assert_int_equal(hold_try(place->fd, "entry", &theirs, &err), 1);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(raise(SIGKILL)); /* it has the hold too, and never closes it */
	assert_int_equal(close(theirs), 0);
	assert_int_equal(hold_wait(place->fd, "entry", &hold, &err), 1);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void what_is_gone_cannot_be_held(void **state)
{
	const struct place *place = *state;
	struct err err = {0};
	int hold;

	assert_int_equal(hold_try(place->fd, "no such entry", &hold, &err), 0);
	for (int again = 0; again < 2; again++) {
		mover.dirfd = place->fd;
		mover.again = again == 1;
		assert_int_equal(hold_wait(place->fd, "entry", &hold, &err), 0);
		assert_int_equal(hold, -1);
		assert_int_equal(unlinkat(place->fd, "moved", AT_REMOVEDIR), 0);
		if (again == 0)
			assert_int_equal(mkdirat(place->fd, "entry", 0700), 0);
	}
}

static void what_is_no_file_is_nobodys(void **state)
{
	const struct place *place = *state;
	struct err err = {0};
	int hold;

	assert_int_equal(mkfifoat(place->fd, "pipe", 0600), 0);
	assert_int_equal(hold_try(place->fd, "pipe", &hold, &err), 1);
	assert_int_equal(hold, -1);
}

#define HOLD_TEST(test) cmocka_unit_test_setup_teardown(test, open_place, close_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
		HOLD_TEST(what_is_held_is_nobody_elses_until_it_is_closed),
		HOLD_TEST(what_is_shared_is_not_held_alone),
		HOLD_TEST(a_hold_is_waited_for_and_ends_with_its_process),
		HOLD_TEST(what_is_gone_cannot_be_held),
		HOLD_TEST(what_is_no_file_is_nobodys),
	};

	return cmocka_run_group_tests_name("layers/hold", tests, NULL, NULL);
}
