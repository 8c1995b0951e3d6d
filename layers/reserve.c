/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/reserve.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define RESERVE_NAME "reserve"

static int reserve_fail(const struct store *store, int os, struct err *err)
{
	return err_os(err, os, "%s/" RESERVE_NAME, store_path(store));
}

int reserve_make(struct store *store, struct err *err)
{
	int root = store_dirfd(store, STORE_ROOT);
	auto_close int fd = openat(root, RESERVE_NAME,
				   O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	int failed;

	if (fd < 0)
		return errno == ENOSPC || errno == EDQUOT ? 0 : reserve_fail(store, errno, err);
	if (fallocate(fd, 0, 0, (off_t)RESERVE_BYTES) == 0)
		return 1;
	failed = errno;
	/* A part of it would not help a collection, and others may need the space. */
	if (unlinkat(root, RESERVE_NAME, 0) < 0 && errno != ENOENT)
		return reserve_fail(store, errno, err);
	if (failed == ENOSPC || failed == EDQUOT || failed == EOPNOTSUPP)
		return 0;
	return reserve_fail(store, failed, err);
}

int reserve_give_up(struct store *store, struct err *err)
{
	int root = store_dirfd(store, STORE_ROOT);

	if (unlinkat(root, RESERVE_NAME, 0) < 0)
		return errno == ENOENT ? 0 : reserve_fail(store, errno, err);
	/* What was deleted is free only once the file system's journal is written. */
	return fsync(root) < 0 ? reserve_fail(store, errno, err) : 1;
}
