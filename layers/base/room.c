/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/room.h"

#include <fcntl.h>
#include <linux/limits.h>

int room_check(int dirfd, size_t bytes, struct err *err)
{
	auto_close int fd = openat(dirfd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	int failed;

	if (fd < 0)
		return err_os(err, errno, "make a file in the data directory");
	failed = posix_fallocate(fd, 0, (off_t)bytes);
	if (failed)
		return err_os(err, failed, "the data directory takes no %zu bytes more", bytes);
	return 0;
}

int room_xattr_failed(int dirfd, int os, const char *name, size_t size, struct err *err)
{
	if (os == ENOSPC && room_check(dirfd, XATTR_SIZE_MAX, err) < 0)
		return -1;
	if (os == ENOSPC || os == ENOTSUP)
		return err_set(err, ERR_UNSUPPORTED,
			       "the data directory's file system does not hold its xattr %.100s "
			       "of %zu bytes",
			       name, size);
	return err_os(err, os, "set xattr %.100s", name);
}
