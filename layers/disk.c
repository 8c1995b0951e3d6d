/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/disk.h"

#include "layers/digest_set.h"

#include <fcntl.h>
#include <sys/stat.h>

#define DISK_BLOCK 512 /* of st_blocks, whatever the file system's are */

struct disk_walk {
	const struct cancel *cancel;
	disk_each_fn *fn;
	void *ctx;
	dev_t device;
	struct digest_set linked; /* files of several names that were counted */
};

/* 1 it counts, 0 it did already, -1. One device, so the inode's number says all. */
static int disk_is_new(struct disk_walk *walk, const struct stat *st, struct err *err)
{
	struct digest file = {.algorithm = DIGEST_SHA256};

	if (S_ISDIR(st->st_mode) || st->st_nlink < 2)
		return 1;
	memcpy(file.bytes, &st->st_ino, sizeof(st->st_ino));
	return digest_set_add(&walk->linked, &file, err);
}

/* 1 a directory to go into, 0 not, -1. Adds its own blocks. */
static int disk_add(struct disk_walk *walk, int fd, const char *name, uint64_t *bytes,
		    struct err *err)
{
	struct stat st;
	int counts;

	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_os(err, errno, "look at %s", name);
	if (st.st_dev != walk->device)
		return 0;
	counts = disk_is_new(walk, &st, err);
	if (counts < 0)
		return -1;
	if (counts == 1)
		*bytes += (uint64_t)st.st_blocks * DISK_BLOCK;
	return S_ISDIR(st.st_mode);
}

/* A directory to read: 1, 0 it is gone, -1. */
static int disk_open(int dirfd, const char *name, DIR **out, struct err *err)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? 0 : err_os(err, errno, "open %s", name);
	*out = fdopendir(fd);
	if (!*out)
		abort(); /* only out of memory */
	return 1;
}

static int disk_count(struct disk_walk *walk, int fd, const char *name, int depth, uint64_t *bytes,
		      struct err *err)
{
	auto_dir DIR *dir = NULL;
	const struct dirent *entry;
	int more = disk_add(walk, fd, name, bytes, err);

	if (more <= 0 || depth == DISK_DEPTH_MAX)
		return more < 0 ? -1 : 0;
	if (cancel_check(walk->cancel, err) < 0)
		return -1;
	more = disk_open(fd, name, &dir, err);
	if (more <= 0)
		return more;
	while ((entry = readdir(dir))) {
		if (!fd_is_dots(entry->d_name) &&
		    disk_count(walk, dirfd(dir), entry->d_name, depth + 1, bytes, err) < 0)
			return -1;
	}
	return 0;
}

/* One of the directories, entry by entry, and itself at the end. */
static int disk_walk_dir(struct disk_walk *walk, int rootfd, const char *name, uint64_t bytes,
			 struct err *err)
{
	const struct disk_entry itself = {name, "", bytes};
	auto_dir DIR *dir = NULL;
	const struct dirent *entry;
	int more = disk_open(rootfd, name, &dir, err);

	if (more < 0)
		return -1;
	while (more == 1 && (entry = readdir(dir))) {
		struct disk_entry found = {name, entry->d_name, 0};
		int result;

		if (fd_is_dots(entry->d_name))
			continue;
		result = disk_count(walk, dirfd(dir), entry->d_name, 2, &found.bytes, err);
		result = result == 0 ? walk->fn(walk->ctx, &found, err) : result;
		if (result != 0)
			return result;
	}
	return walk->fn(walk->ctx, &itself, err);
}

static int disk_walk_root(struct disk_walk *walk, int rootfd, struct err *err)
{
	struct disk_entry itself = {"", "", 0};
	auto_dir DIR *dir = NULL;
	const struct dirent *entry;

	if (disk_add(walk, rootfd, ".", &itself.bytes, err) < 0 ||
	    fd_open_dir(rootfd, ".", &dir, err) < 0)
		return -1;
	while ((entry = readdir(dir))) {
		struct disk_entry found = {"", entry->d_name, 0};
		int result;

		if (fd_is_dots(entry->d_name))
			continue;
		result = disk_add(walk, rootfd, entry->d_name, &found.bytes, err);
		if (result == 1)
			result = disk_walk_dir(walk, rootfd, entry->d_name, found.bytes, err);
		else if (result == 0)
			result = walk->fn(walk->ctx, &found, err);
		if (result != 0)
			return result;
	}
	return walk->fn(walk->ctx, &itself, err);
}

int disk_each(struct store *store, const struct cancel *cancel, disk_each_fn *fn, void *ctx,
	      struct err *err)
{
	int rootfd = store_dirfd(store, STORE_ROOT);
	struct disk_walk walk = {.cancel = cancel, .fn = fn, .ctx = ctx};
	struct stat st;
	int result;

	if (fstat(rootfd, &st) < 0)
		return err_os(err, errno, "look at %s", store_path(store));
	walk.device = st.st_dev;
	result = disk_walk_root(&walk, rootfd, err);
	digest_set_done(&walk.linked);
	return result < 0 ? err_ctx(err, "%s", store_path(store)) : result;
}
