/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sandbox/stack_place.h"

#include "sandbox/etc_priv.h"
#include "sandbox/userns_priv.h"
#include "tests/check.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

static int place_remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)ftw;
	return type == FTW_DP ? rmdir(path) : unlink(path);
}

int place_open_new(int dirfd, const char *name)
{
	int fd;

	assert_int_equal(mkdirat(dirfd, name, 0755), 0);
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void place_make_tree(struct place *place, unsigned i)
{
	char name[DIGEST_HEX_MAX];
	int fd;
	int file;

	digest_of((struct str){(const char *)&i, sizeof(i)}, &place->ids[i]);
	fd = place_open_new(place->stack.treesfd, digest_hex(&place->ids[i], name));
	file = openat(fd, "top", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(dprintf(file, "%u", i) > 0);
	assert_int_equal(close(file) + close(fd), 0);
}

int place_make(void **state)
{
	static struct place place;
	struct err err = {0};
	int dirfd;

	(void)snprintf(place.dir, sizeof(place.dir), "/tmp/hearth-stack-test-%d", (int)getpid());
	dirfd = place_open_new(AT_FDCWD, place.dir);
	place.stack = (struct stack){.treesfd = place_open_new(dirfd, "trees"),
				     .ownfd = place_open_new(dirfd, "own"),
				     .scratchfd = place_open_new(dirfd, "scratch"),
				     .diff_ids = place.ids,
				     .first_id = USERNS_FIRST};
	place.stack.basefd = etc_open_base(dirfd, &err);
	assert_true(place.stack.basefd >= 0);
	assert_int_equal(close(dirfd), 0);
	assert_int_equal(mkdirat(place.stack.ownfd, "up", 0755), 0);
	assert_int_equal(mkdirat(place.stack.ownfd, "work", 0700), 0);
	for (unsigned i = 0; i < TREES; i++)
		place_make_tree(&place, i);
	*state = &place;
	return 0;
}

void place_unmount(const struct place *place, const char *name)
{
	char path[96];

	(void)snprintf(path, sizeof(path), "%s/scratch/%s", place->dir, name);
	(void)umount2(path, MNT_DETACH);
}

int place_end(void **state)
{
	struct place *place = *state;

	place_unmount(place, "root");
	(void)close(place->stack.treesfd);
	(void)close(place->stack.ownfd);
	(void)close(place->stack.basefd);
	(void)close(place->stack.scratchfd);
	return nftw(place->dir, place_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}
