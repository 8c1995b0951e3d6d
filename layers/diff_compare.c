/* SPDX-License-Identifier: Apache-2.0 */
/* diff_compare.c - whether a file of the upper directory is just what lies below it. */
#include "layers/base/fd.h"
#include "layers/diff_priv.h"

#include <fcntl.h>
#include <limits.h>

static bool same_owner_and_mode(const struct stat *a, const struct stat *b)
{
	return a->st_mode == b->st_mode && a->st_uid == b->st_uid && a->st_gid == b->st_gid;
}

static bool has_holes(const struct stat *stat)
{
	return (int64_t)stat->st_blocks * 512 < stat->st_size;
}

/* Where the next data of either file starts; at, where neither has a hole to skip. */
static off_t next_data(int a, int b, off_t at, off_t size)
{
	off_t x = lseek(a, at, SEEK_DATA);
	off_t y = lseek(b, at, SEEK_DATA);

	if (x < 0)
		x = errno == ENXIO ? size : at;
	if (y < 0)
		y = errno == ENXIO ? size : at;
	return x < y ? x : y;
}

static int same_bytes(struct diff *diff, int a, int b, const struct stat *stat, bool holes,
		      struct err *err)
{
	for (off_t at = 0; at < stat->st_size;) {
		ssize_t n;
		ssize_t m;

		if (cancel_check(diff->spec->cancel, err) < 0)
			return -1;
		if (holes)
			at = next_data(a, b, at, stat->st_size);
		if (at >= stat->st_size)
			break;
		n = fd_pread_all(a, diff->block, DIFF_BLOCK, at, err);
		m = n < 0 ? -1 : fd_pread_all(b, diff->other, DIFF_BLOCK, at, err);
		if (m < 0)
			return -1;
		if (n != m || n == 0 || memcmp(diff->block, diff->other, (size_t)n) != 0)
			return 0;
		at += n;
	}
	return 1;
}

/* 1 with a descriptor of the lower file when its metadata are the same. */
static int open_lower(struct diff *diff, const struct diff_dir *dir, const char *name,
		      const struct stat *lower, int *out_fd, struct err *err)
{
	auto_close int fd = diff_open(dir->lowerfd, name, O_NONBLOCK, err);
	const struct file_ref file = {.fd = fd};

	if (fd < 0)
		return err_ctx(err, "lower");
	if (attrs_read(&diff->lower, &file, lower->st_mode, err) < 0)
		return err_ctx(err, "lower");
	*out_fd = steal_fd(&fd);
	return attrs_equal(&diff->upper, &diff->lower);
}

int diff_same_file(struct diff *diff, const struct diff_dir *dir, const char *name, int fd,
		   const struct stat *stat, const struct stat *lower, struct err *err)
{
	auto_close int lowerfd = -1;
	struct stat timed = *stat;
	int same;

	diff_entry_time(diff, &timed);
	if (!same_owner_and_mode(stat, lower) || stat->st_size != lower->st_size ||
	    timed.st_mtim.tv_sec != lower->st_mtim.tv_sec)
		return 0;
	same = open_lower(diff, dir, name, lower, &lowerfd, err);
	if (same <= 0)
		return same;
	return same_bytes(diff, fd, lowerfd, stat, has_holes(stat) || has_holes(lower), err);
}

static int same_target(int upperfd, int lowerfd, const char *name, struct err *err)
{
	char a[PATH_MAX];
	char b[PATH_MAX];
	ssize_t n = readlinkat(upperfd, name, a, sizeof(a));
	ssize_t m = readlinkat(lowerfd, name, b, sizeof(b));

	if (n < 0 || m < 0)
		return err_os(err, errno, "read a symlink");
	return n == m && memcmp(a, b, (size_t)n) == 0;
}

int diff_same_special(struct diff *diff, const struct diff_dir *dir, const char *name,
		      const struct stat *stat, const struct stat *lower, struct err *err)
{
	const struct file_ref file = {.fd = -1, .dirfd = dir->lowerfd, .name = name};

	if (stat->st_nlink > 1 || !same_owner_and_mode(stat, lower) ||
	    stat->st_rdev != lower->st_rdev)
		return 0;
	if (attrs_read(&diff->lower, &file, lower->st_mode, err) < 0)
		return err_ctx(err, "lower");
	if (!attrs_equal(&diff->upper, &diff->lower))
		return 0;
	return S_ISLNK(stat->st_mode) ? same_target(dir->fd, dir->lowerfd, name, err) : 1;
}

int diff_same_dir(struct diff *diff, const struct diff_dir *dir, struct err *err)
{
	const struct file_ref file = {.fd = dir->lowerfd};
	struct stat lower;

	if (dir->lowerfd < 0)
		return 0;
	if (fstat(dir->lowerfd, &lower) < 0)
		return err_os(err, errno, "stat the lower directory");
	if (!same_owner_and_mode(&dir->stat, &lower))
		return 0;
	if (attrs_read(&diff->lower, &file, lower.st_mode, err) < 0)
		return err_ctx(err, "lower");
	return attrs_equal(&diff->upper, &diff->lower);
}
