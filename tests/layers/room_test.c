/* SPDX-License-Identifier: Apache-2.0 */
/* A file system of 1 MiB and 16 files, in a mount namespace of the test's own. */
#include "layers/base/room.h"

#include "tests/check.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define MIB ((size_t)1024 * 1024)

static int open_small(void **state)
{
	static int dirfd;

	if (mount("tmpfs", "/mnt", "tmpfs", 0, "size=1m,nr_inodes=16") < 0)
		return -1;
	dirfd = open("/mnt", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = &dirfd;
	return dirfd < 0 ? -1 : 0;
}

static int close_small(void **state)
{
	return close(*(int *)*state) + umount("/mnt");
}

static void fill_blocks(int dirfd)
{
	auto_close int fd = openat(dirfd, "filler", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_int_equal(posix_fallocate(fd, 0, (off_t)MIB), 0);
}

static void what_fits_there_is_room_for(void **state)
{
	int dirfd = *(int *)*state;
	struct err err = {0};

	check_ok(room_check(dirfd, MIB, &err), &err);
	check_ok(room_check(dirfd, MIB, &err), &err); /* nothing was left */
	check_err(room_check(dirfd, 2 * MIB, &err), &err, ERR_FULL);
	fill_blocks(dirfd);
	check_err(room_check(dirfd, 1, &err), &err, ERR_FULL);
}

static void without_inodes_there_is_none(void **state)
{
	int dirfd = *(int *)*state;
	struct err err = {0};
	char name[16];

	for (int i = 0;; i++) {
		(void)snprintf(name, sizeof(name), "%d", i);
		if (mkdirat(dirfd, name, 0700) < 0)
			break;
	}
	check_err(room_check(dirfd, 1, &err), &err, ERR_FULL);
}

static void an_xattr_that_is_not_held_is_not_a_full_disk(void **state)
{
	static const struct {
		int os;
		enum err_kind empty;
		enum err_kind full;
	} cases[] = {
		{ENOSPC, ERR_UNSUPPORTED, ERR_FULL},
		{ENOTSUP, ERR_UNSUPPORTED, ERR_UNSUPPORTED},
		{EDQUOT, ERR_FULL, ERR_FULL},
		{EPERM, ERR_OS, ERR_OS},
	};
	const size_t count = sizeof(cases) / sizeof(cases[0]);
	int dirfd = *(int *)*state;
	struct err err = {0};

	for (size_t i = 0; i < count; i++)
		check_err(room_xattr_failed(dirfd, cases[i].os, "user.big", 5000, &err), &err,
			  cases[i].empty);
	fill_blocks(dirfd);
	for (size_t i = 0; i < count; i++)
		check_err(room_xattr_failed(dirfd, cases[i].os, "user.big", 5000, &err), &err,
			  cases[i].full);
}

#define room_test(name) cmocka_unit_test_setup_teardown(name, open_small, close_small)

int main(void)
{
	const struct CMUnitTest tests[] = {
		room_test(what_fits_there_is_room_for),
		room_test(without_inodes_there_is_none),
		room_test(an_xattr_that_is_not_held_is_not_a_full_disk),
	};

	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 125;
	return cmocka_run_group_tests_name("layers/room", tests, NULL, NULL);
}
