/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/layers/store_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

/*
 * A sweep that is faster twice: it takes the first directory before it is
 * locked, and locks the second one. Between them somebody opens a descriptor.
 */
struct rival {
	bool present;
	int tmpfd;
	int tries;
	char name[32]; /* of the last one made */
	int lockfd;
	int otherfd;
};

static struct rival rival;

int __real_flock(int fd, int operation);
int __real_mkdirat(int dirfd, const char *path, mode_t mode);
int __wrap_flock(int fd, int operation);
int __wrap_mkdirat(int dirfd, const char *path, mode_t mode);

int __wrap_mkdirat(int dirfd, const char *path, mode_t mode)
{
	int result = __real_mkdirat(dirfd, path, mode);

	if (!rival.present)
		return result;
	(void)snprintf(rival.name, sizeof(rival.name), "%s", path);
	if (++rival.tries != 2)
		return result;
	rival.otherfd = openat(rival.tmpfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rival.lockfd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(rival.otherfd >= 0 && rival.lockfd >= 0);
	assert_int_equal(__real_flock(rival.lockfd, LOCK_EX), 0);
	return result;
}

int __wrap_flock(int fd, int operation)
{
	if (rival.present && rival.tries == 1)
		assert_int_equal(renameat(rival.tmpfd, rival.name, rival.tmpfd, "swept"), 0);
	return __real_flock(fd, operation);
}

static void touch(int dirfd, const char *name)
{
	auto_close int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0);

	assert_true(fd >= 0);
}

/* A chain of directories, deeper than any descriptor limit. */
static void dig(int dirfd, const char *name, int depth)
{
	auto_close int at = openat(dirfd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; i < depth; i++) {
		const char *step = i == 0 ? name : "deeper";
		int next;

		assert_int_equal(mkdirat(at, step, 0700), 0);
		next = openat(at, step, O_PATH | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		(void)close(at);
		at = next;
	}
	touch(at, "bottom");
}

static void set_immutable(int dirfd, const char *name)
{
	auto_close int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
	unsigned flags = FS_IMMUTABLE_FL;

	if (ioctl(fd, FS_IOC_SETFLAGS, &flags) < 0)
		skip(); /* not root, or a file system without the flag */
}

static void staging_leaves_nothing_behind(void **state)
{
	struct store_fixture *fixture = *state;
	struct staging staging;
	struct err err = {0};

	check_ok(staging_open(fixture->store, &staging, &err), &err);
	assert_int_equal(store_fixture_count(fixture->store, STORE_TMP), 1);
	touch(staging.fd, "file");
	assert_int_equal(mkdirat(staging.fd, "dir", 0), 0);
	staging_close(&staging);
	assert_int_equal(staging.fd, -1);
	assert_int_equal(store_fixture_count(fixture->store, STORE_TMP), 0);
	assert_int_equal(store_fixture_count(fixture->store, STORE_TRASH), 0);
}

static void a_faster_sweep_costs_nobody_a_descriptor(void **state)
{
	struct store_fixture *fixture = *state;
	struct staging staging;
	struct err err = {0};
	struct stat other;

	rival = (struct rival){.present = true, .tmpfd = store_dirfd(fixture->store, STORE_TMP)};
	check_ok(staging_open(fixture->store, &staging, &err), &err);
	rival.present = false;
	assert_int_equal(rival.tries, 3);
	assert_int_equal(fstat(rival.otherfd, &other), 0);
	staging_close(&staging);
	assert_int_equal(close(rival.otherfd), 0);
	assert_int_equal(close(rival.lockfd), 0);
}

static void a_sweep_takes_what_nobody_holds(void **state)
{
	struct store_fixture *fixture = *state;
	auto_staging struct staging held = STAGING_INIT;
	int tmpfd = store_dirfd(fixture->store, STORE_TMP);
	struct err err = {0};

	check_ok(staging_open(fixture->store, &held, &err), &err);
	touch(held.fd, "mine");
	dig(tmpfd, "dead", 3);
	touch(tmpfd, "file");
	assert_int_equal(symlinkat("/etc", tmpfd, "link"), 0);
	assert_int_equal(mkfifoat(tmpfd, "fifo", 0600), 0);
	check_ok(store_sweep(fixture->store, NULL, &err), &err);
	assert_int_equal(store_fixture_count(fixture->store, STORE_TMP), 1);
	assert_int_equal(store_fixture_count(fixture->store, STORE_TRASH), 0);
	assert_int_equal(faccessat(held.fd, "mine", F_OK, 0), 0);
}

static void discard_refuses_to_leave_the_store(void **state)
{
	static const char *const wrong[] = {"", ".", "..", "a/b", "/etc"};
	struct store_fixture *fixture = *state;
	int root = store_dirfd(fixture->store, STORE_ROOT);
	auto_close int outside = open(fixture->parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err err = {0};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		check_err(store_discard(fixture->store, root, wrong[i], &err), &err, ERR_INVALID);
	touch(outside, "precious");
	check_err(store_discard(fixture->store, outside, "precious", &err), &err, ERR_DENIED);
	assert_int_equal(faccessat(outside, "precious", F_OK, 0), 0);
	check_ok(store_discard(fixture->store, root, "never was", &err), &err);
}

static void discard_never_follows_a_symlink(void **state)
{
	struct store_fixture *fixture = *state;
	int tmpfd = store_dirfd(fixture->store, STORE_TMP);
	auto_close int outside = open(fixture->parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_close int dir = -1;
	struct err err = {0};

	assert_int_equal(mkdirat(outside, "kept", 0700), 0);
	dig(outside, "kept/dir", 1);
	assert_int_equal(mkdirat(tmpfd, "x", 0700), 0);
	dir = openat(tmpfd, "x", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(symlinkat("../../../kept", dir, "link"), 0);
	assert_int_equal(symlinkat(fixture->parent, tmpfd, "link"), 0);
	check_ok(store_discard(fixture->store, tmpfd, "x", &err), &err);
	check_ok(store_discard(fixture->store, tmpfd, "link", &err), &err);
	assert_int_equal(faccessat(outside, "kept/dir/bottom", F_OK, 0), 0);
	assert_int_equal(store_fixture_count(fixture->store, STORE_TMP), 0);
	assert_int_equal(store_fixture_count(fixture->store, STORE_TRASH), 0);
}

static void a_tree_of_any_depth_goes(void **state)
{
	struct store_fixture *fixture = *state;
	int tmpfd = store_dirfd(fixture->store, STORE_TMP);
	struct err err = {0};

	dig(tmpfd, "deep", 5000);
	check_ok(store_discard(fixture->store, tmpfd, "deep", &err), &err);
	assert_int_equal(store_fixture_count(fixture->store, STORE_TMP), 0);
	check_ok(store_sweep(fixture->store, NULL, &err), &err);
	assert_int_equal(store_fixture_count(fixture->store, STORE_TRASH), 0);
}

static void odd_modes_and_immutable_files_go_too(void **state)
{
	struct store_fixture *fixture = *state;
	int tmpfd = store_dirfd(fixture->store, STORE_TMP);
	struct err err = {0};

	dig(tmpfd, "odd", 2);
	touch(tmpfd, "odd/file");
	assert_int_equal(fchmodat(tmpfd, "odd/deeper", 0, 0), 0);
	assert_int_equal(fchmodat(tmpfd, "odd", 0500, 0), 0);
	set_immutable(tmpfd, "odd/deeper/bottom");
	set_immutable(tmpfd, "odd/deeper");
	set_immutable(tmpfd, "odd");
	check_ok(store_discard(fixture->store, tmpfd, "odd", &err), &err);
	assert_int_equal(store_fixture_count(fixture->store, STORE_TMP), 0);
	assert_int_equal(store_fixture_count(fixture->store, STORE_TRASH), 0);
}

static void much_is_left_to_the_sweep(void **state)
{
	struct store_fixture *fixture = *state;
	auto_staging struct staging staging = STAGING_INIT;
	char name[16];
	struct err err = {0};

	check_ok(staging_open(fixture->store, &staging, &err), &err);
	for (int i = 0; i < 1500; i++) {
		(void)snprintf(name, sizeof(name), "%d", i);
		touch(staging.fd, name);
	}
	staging_close(&staging);
	assert_int_equal(store_fixture_count(fixture->store, STORE_TMP), 0);
	assert_int_equal(store_fixture_count(fixture->store, STORE_TRASH), 1);
	check_ok(store_sweep(fixture->store, NULL, &err), &err);
	assert_int_equal(store_fixture_count(fixture->store, STORE_TRASH), 0);
}

static void what_is_set_aside_waits_for_a_sweep(void **state)
{
	struct store_fixture *fixture = *state;
	int tmpfd = store_dirfd(fixture->store, STORE_TMP);
	struct cancel cancel;
	struct err err = {0};

	dig(tmpfd, "aside", 3);
	check_ok(store_set_aside(fixture->store, tmpfd, "aside", &err), &err);
	check_ok(store_set_aside(fixture->store, tmpfd, "never was", &err), &err);
	assert_int_equal(store_fixture_count(fixture->store, STORE_TMP), 0);
	assert_int_equal(store_fixture_count(fixture->store, STORE_TRASH), 1);
	check_ok(cancel_init(&cancel, &err), &err);
	cancel_raise(&cancel);
	check_err(store_sweep(fixture->store, &cancel, &err), &err, ERR_CANCELLED);
	cancel_done(&cancel);
	assert_int_equal(store_fixture_count(fixture->store, STORE_TRASH), 1);
	check_ok(store_sweep(fixture->store, NULL, &err), &err);
	assert_int_equal(store_fixture_count(fixture->store, STORE_TRASH), 0);
}

#define STORE_TEST(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(staging_leaves_nothing_behind),
		STORE_TEST(a_faster_sweep_costs_nobody_a_descriptor),
		STORE_TEST(a_sweep_takes_what_nobody_holds),
		STORE_TEST(discard_refuses_to_leave_the_store),
		STORE_TEST(discard_never_follows_a_symlink),
		STORE_TEST(a_tree_of_any_depth_goes),
		STORE_TEST(odd_modes_and_immutable_files_go_too),
		STORE_TEST(much_is_left_to_the_sweep),
		STORE_TEST(what_is_set_aside_waits_for_a_sweep),
	};

	return cmocka_run_group_tests_name("layers/staging", tests, NULL, NULL);
}
