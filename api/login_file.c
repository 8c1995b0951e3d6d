/* SPDX-License-Identifier: Apache-2.0 */
#include "api/login_file.h"

#include "layers/base/fd.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define LOGIN_FILE_NEW ".hearth-login.new" /* one at a time: the directory is locked */

/* Where a path leads to: itself, if nothing is there yet. */
static char *login_file_resolve(const char *path)
{
	auto_close int fd = open(path, O_PATH | O_CLOEXEC);
	char link[64];
	char real[PATH_MAX];
	ssize_t n = -1;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (fd >= 0)
		n = readlink(link, real, sizeof(real));
	if (n <= 0 || n == (ssize_t)sizeof(real))
		return str_dup(str_of(path));
	return str_dup((struct str){real, (size_t)n});
}

/* All directories above a file. Those that are there stay as they are. */
static void login_file_make_dirs(char *path)
{
	for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		(void)mkdir(path, 0700);
		*at = '/';
	}
}

static int login_file_lock(struct login_file *file, struct err *err)
{
	const char *dir = file->name == file->path + 1 ? "/" : file->path;
	int rc;

	file->name[-1] = '\0';
	file->dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rc = errno;
	file->name[-1] = '/';
	if (file->dirfd < 0)
		return rc == ENOENT ? 0 : err_os(err, rc, "open the directory of %s", file->path);
	do {
		rc = flock(file->dirfd, LOCK_EX);
	} while (rc < 0 && errno == EINTR);
	return rc < 0 ? err_os(err, errno, "lock the directory of %s", file->path) : 0;
}

static int login_file_read(struct login_file *file, struct err *err)
{
	auto_close int fd = -1;
	struct stat st;

	if (file->dirfd < 0)
		return 0;
	fd = openat(file->dirfd, file->name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT ? 0 : err_os(err, errno, "open %s", file->path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, "%s is no regular file", file->path);
	return fd_read_all(fd, &file->text, err) < 0 ? err_ctx(err, "%s", file->path) : 0;
}

int login_file_open(struct login_file *file, const char *path, bool make, struct err *err)
{
	char *slash;

	file->path = login_file_resolve(path);
	slash = strrchr(file->path, '/');
	if (!slash)
		return err_set(err, ERR_INVALID, "%s: expected a path with a directory, as ./%s",
			       path, path);
	file->name = slash + 1;
	if (make)
		login_file_make_dirs(file->path);
	if (login_file_lock(file, err) < 0)
		return -1;
	if (make && file->dirfd < 0)
		return err_set(err, ERR_NOT_FOUND, "the directory of %s cannot be made",
			       file->path);
	return login_file_read(file, err);
}

/* Who owned it owns it still: root may act for a user. */
static void login_file_keep_owner(const struct login_file *file, int fd)
{
	struct stat st;

	if (fstatat(file->dirfd, file->name, &st, 0) == 0)
		(void)!fchown(fd, st.st_uid, st.st_gid);
}

static int login_file_write(const struct login_file *file, struct str text, struct err *err)
{
	auto_close int fd =
		openat(file->dirfd, LOGIN_FILE_NEW, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_os(err, errno, "create a file");
	login_file_keep_owner(file, fd);
	if (fd_write_all(fd, text.ptr, text.len, err) < 0)
		return -1;
	if (fsync(fd) < 0 || renameat(file->dirfd, LOGIN_FILE_NEW, file->dirfd, file->name) < 0 ||
	    fsync(file->dirfd) < 0)
		return err_os(err, errno, "replace");
	return 0;
}

int login_file_replace(const struct login_file *file, struct str text, struct err *err)
{
	(void)unlinkat(file->dirfd, LOGIN_FILE_NEW, 0); /* of one that was killed */
	if (login_file_write(file, text, err) == 0)
		return 0;
	(void)unlinkat(file->dirfd, LOGIN_FILE_NEW, 0);
	return err_ctx(err, "%s", file->path);
}

void login_file_done(struct login_file *file)
{
	auto_close_release(&file->dirfd);
	free(file->path);
	buf_done(&file->text);
	*file = LOGIN_FILE_INIT;
}
