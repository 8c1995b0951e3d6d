/* SPDX-License-Identifier: Apache-2.0 */
/* unpack_clear.c - an entry makes room for a later one of its name. */
#include "layers/unpack_priv.h"

#include <dirent.h>
#include <fcntl.h>

static void stream_close(DIR *stream)
{
	if (stream)
		(void)closedir(stream);
}

DEFINE_AUTO(stream, DIR *, stream_close);

static int clear_dir(int dirfd, const char *name, struct err *err);

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int clear_one(int dirfd, const char *name, struct err *err)
{
	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return err_os(err, errno, "remove");
	return clear_dir(dirfd, name, err);
}

static int clear_children(DIR *stream, struct err *err)
{
	struct dirent *entry;

	errno = 0;
	while ((entry = readdir(stream))) {
		if (!is_dots(entry->d_name) && clear_one(dirfd(stream), entry->d_name, err) < 0)
			return -1;
		errno = 0;
	}
	return errno ? err_os(err, errno, "read a directory") : 0;
}

static int clear_dir(int dirfd, const char *name, struct err *err)
{
	AUTO(stream) DIR *stream = NULL;
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return err_os(err, errno, "open a directory");
	stream = fdopendir(fd);
	if (!stream) {
		int saved = errno;

		(void)close(fd);
		return err_os(err, saved, "read a directory");
	}
	if (clear_children(stream, err) < 0)
		return -1;
	if (unlinkat(dirfd, name, AT_REMOVEDIR) < 0)
		return err_os(err, errno, "remove a directory");
	return 0;
}

/* A tree is nowhere deeper than TREE_DEPTH_MAX, so neither is the recursion. */
int unpack_clear(struct dirs *dirs, const char *name, struct err *err)
{
	return clear_one(dirs_fd(dirs), name, err);
}
