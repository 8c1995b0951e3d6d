/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/hold.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/stat.h>

/* 1 locked, 0 somebody else has locked it, -1. */
static int hold_lock(int fd, int how, const char *name, struct err *err)
{
	while (flock(fd, how) < 0) {
		if (errno == EWOULDBLOCK)
			return 0;
		if (errno != EINTR)
			return err_os(err, errno, "lock %s", name);
	}
	return 1;
}

static bool hold_has_name(int fd, int dirfd, const char *name)
{
	struct stat held;
	struct stat named;

	return fstat(fd, &held) == 0 && fstatat(dirfd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

static int hold_open(int dirfd, const char *name, int how, int *out, struct err *err)
{
	auto_close int fd =
		openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	int locked;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_os(err, errno, "open %s", name);
	locked = hold_lock(fd, how, name, err);
	if (locked <= 0)
		return locked;
	if (!hold_has_name(fd, dirfd, name))
		return 0;
	*out = steal_fd(&fd);
	return 1;
}

static int hold_entry(int dirfd, const char *name, int how, int *out, struct err *err)
{
	struct stat st;

	*out = -1;
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_os(err, errno, "look at %s", name);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return 1; /* some would not even open */
	return hold_open(dirfd, name, how, out, err);
}

int hold_try(int dirfd, const char *name, int *out, struct err *err)
{
	return hold_entry(dirfd, name, LOCK_EX | LOCK_NB, out, err);
}

int hold_share(int dirfd, const char *name, int *out, struct err *err)
{
	return hold_entry(dirfd, name, LOCK_SH | LOCK_NB, out, err);
}

int hold_wait(int dirfd, const char *name, int *out, struct err *err)
{
	return hold_entry(dirfd, name, LOCK_EX, out, err);
}
