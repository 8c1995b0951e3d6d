/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/trash_priv.h"

#include "layers/base/ulid.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#define LOG_MODULE "layers"
#include "layers/base/log.h"

/*
 * Every level holds a descriptor. What lies deeper is moved to the top of
 * trash/ and found there in the next round.
 */
#define TRASH_DEPTH_MAX 32

struct trash_work {
	int trashfd;
	uint64_t left; /* entries that may still be unlinked */
	const struct cancel *cancel;
	bool again; /* something was moved to the top */
};

static void trash_clear_flags(int fd)
{
	unsigned flags;

	if (ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0 || !(flags & (FS_IMMUTABLE_FL | FS_APPEND_FL)))
		return;
	flags &= ~(unsigned)(FS_IMMUTABLE_FL | FS_APPEND_FL);
	(void)ioctl(fd, FS_IOC_SETFLAGS, &flags); /* the retry tells whether it helped */
}

/* Make an entry removable that is immutable, or in or of a directory without rights. */
static void trash_unlock(int dirfd, const char *name)
{
	auto_close int fd = -1;
	struct stat st;

	trash_clear_flags(dirfd);
	if (geteuid() != 0)
		(void)fchmod(dirfd, 0700);
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (S_ISDIR(st.st_mode) && geteuid() != 0 &&
	    fchmodat(dirfd, name, 0700, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return;
	fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0)
		trash_clear_flags(fd);
}

static int trash_unlink(int dirfd, const char *name, int flags)
{
	if (unlinkat(dirfd, name, flags) == 0)
		return 0;
	if (errno != EPERM && errno != EACCES)
		return -1;
	trash_unlock(dirfd, name);
	return unlinkat(dirfd, name, flags);
}

static int trash_rename(int fromfd, const char *name, int trashfd)
{
	char fresh[ULID_TEXT_MAX];

	ulid_new(fresh);
	if (renameat(fromfd, name, trashfd, fresh) == 0)
		return 0;
	if (errno != EPERM && errno != EACCES)
		return -1;
	trash_unlock(fromfd, name);
	return renameat(fromfd, name, trashfd, fresh);
}

int trash_take(struct store *store, int dirfd, const char *name, struct err *err)
{
	if (trash_rename(dirfd, name, store->dirs[STORE_TRASH]) == 0)
		return 1;
	if (errno == ENOENT)
		return 0;
	return err_os(err, errno, "move %s to %s/trash", name, store->path);
}

static bool trash_stays(int os)
{
	/* a mount point, or what leads to one, or somebody else is at it */
	return os == EBUSY || os == ENOTEMPTY || os == ENOENT;
}

static int trash_remove(struct trash_work *work, int dirfd, const char *name, int depth,
			struct err *err);

static int trash_remove_children(struct trash_work *work, DIR *dir, int depth, struct err *err)
{
	struct dirent *entry;

	errno = 0;
	while (work->left > 0 && (entry = readdir(dir))) {
		if (!fd_is_dots(entry->d_name) &&
		    trash_remove(work, dirfd(dir), entry->d_name, depth + 1, err) < 0)
			return -1;
		errno = 0;
	}
	return errno ? err_os(err, errno, "read a directory in the trash") : 0;
}

/* NULL and 0 for what stays where it is. */
static int trash_open(int dirfd, const char *name, DIR **out, struct err *err)
{
	auto_close int fd = fd_open_entry(dirfd, name, O_RDONLY | O_DIRECTORY, err);

	*out = NULL;
	if (fd < 0 && err->os == EACCES) {
		trash_unlock(dirfd, name);
		fd = fd_open_entry(dirfd, name, O_RDONLY | O_DIRECTORY, err);
	}
	if (fd < 0 && err->kind == ERR_DENIED) {
		log_debug("mount point left in the trash name=%s", name);
		return 0;
	}
	if (fd < 0)
		return trash_stays(err->os) ? 0 : -1;
	*out = fdopendir(fd);
	if (!*out)
		return err_os(err, errno, "read a directory in the trash");
	(void)steal_fd(&fd);
	return 0;
}

static int trash_remove_dir(struct trash_work *work, int dirfd, const char *name, int depth,
			    struct err *err)
{
	auto_dir DIR *dir = NULL;

	if (depth > TRASH_DEPTH_MAX) {
		work->again = true;
		if (trash_rename(dirfd, name, work->trashfd) < 0 && !trash_stays(errno))
			return err_os(err, errno, "move a directory within the trash");
		return 0;
	}
	if (trash_open(dirfd, name, &dir, err) < 0)
		return -1;
	if (!dir)
		return 0;
	if (trash_remove_children(work, dir, depth, err) < 0)
		return -1;
	if (work->left > 0 && trash_unlink(dirfd, name, AT_REMOVEDIR) < 0 && !trash_stays(errno))
		return err_os(err, errno, "remove a directory in the trash");
	return 0;
}

static int trash_remove(struct trash_work *work, int dirfd, const char *name, int depth,
			struct err *err)
{
	if (cancel_check(work->cancel, err) < 0)
		return -1;
	work->left--;
	if (trash_unlink(dirfd, name, 0) == 0 || trash_stays(errno))
		return 0;
	if (errno != EISDIR)
		return err_os(err, errno, "remove a file in the trash");
	return trash_remove_dir(work, dirfd, name, depth, err);
}

static int trash_round(struct trash_work *work, struct err *err)
{
	auto_dir DIR *dir = NULL;

	work->again = false;
	if (fd_open_dir(work->trashfd, ".", &dir, err) < 0)
		return -1;
	return trash_remove_children(work, dir, -1, err);
}

int trash_empty(struct store *store, uint64_t most, const struct cancel *cancel, struct err *err)
{
	struct trash_work work = {
		.trashfd = store->dirs[STORE_TRASH], .left = most, .cancel = cancel};

	do {
		if (trash_round(&work, err) < 0)
			return err_ctx(err, "%s/trash", store->path);
	} while (work.again && work.left > 0);
	return 0;
}
