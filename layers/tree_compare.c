/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/tree_compare_priv.h"

#include "layers/attrs_priv.h"
#include "layers/base/fd.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#define COMPARE_BLOCK ((size_t)128 * 1024)

struct compare {
	const struct tree_compare_spec *spec;
	uint64_t bytes; /* of a, that were read */
	struct attrs attrs[2];
	char block[2][COMPARE_BLOCK];
};

static bool is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == 0;
}

/* For whiteouts only the type counts; overlayfs makes one inode with many names. */
static bool same_stat(const struct stat *a, const struct stat *b)
{
	if (is_whiteout(a) || is_whiteout(b))
		return is_whiteout(a) && is_whiteout(b);
	if (a->st_mode != b->st_mode || a->st_uid != b->st_uid || a->st_gid != b->st_gid ||
	    a->st_rdev != b->st_rdev)
		return false;
	return S_ISDIR(a->st_mode) || (a->st_size == b->st_size && a->st_nlink == b->st_nlink);
}

static int same_attrs(struct compare *compare, int a, int b, mode_t mode, struct err *err)
{
	const struct file_ref files[2] = {{.fd = a}, {.fd = b}};

	for (size_t i = 0; i < 2; i++) {
		if (attrs_read(&compare->attrs[i], &files[i], mode, err) < 0)
			return err->kind == ERR_UNSUPPORTED ? 0 : -1;
	}
	return attrs_equal(&compare->attrs[0], &compare->attrs[1]) &&
	       compare->attrs[0].opaque == compare->attrs[1].opaque;
}

static int same_bytes(struct compare *compare, int a, int b, off_t size, struct err *err)
{
	for (off_t at = 0; at < size;) {
		ssize_t n = fd_pread_all(a, compare->block[0], COMPARE_BLOCK, at, err);
		ssize_t m = n < 0 ? -1 : fd_pread_all(b, compare->block[1], COMPARE_BLOCK, at, err);

		if (m < 0 || cancel_check(compare->spec->cancel, err) < 0)
			return -1;
		if (n != m || n == 0 ||
		    memcmp(compare->block[0], compare->block[1], (size_t)n) != 0)
			return 0;
		at += n;
		compare->bytes += (uint64_t)n;
	}
	return 1;
}

static bool same_link(int a, int b, const char *name)
{
	char texts[2][PATH_MAX];
	ssize_t n = readlinkat(a, name, texts[0], sizeof(texts[0]));
	ssize_t m = readlinkat(b, name, texts[1], sizeof(texts[1]));

	return n >= 0 && n == m && memcmp(texts[0], texts[1], (size_t)n) == 0;
}

static int same_dir(struct compare *compare, int a, int b, int depth, struct err *err);

/* What the twin has compared already is not read again. */
static int same_data(struct compare *compare, const int files[2], const struct stat st[2],
		     struct err *err)
{
	const struct twin *twin = compare->spec->twin;

	if (!twin)
		return same_bytes(compare, files[0], files[1], st[0].st_size, err);
	return st[0].st_size == 0 || twin_has(twin, st[1].st_ino, st[0].st_ino);
}

static int same_open(struct compare *compare, const int files[2], const struct stat st[2],
		     int depth, struct err *err)
{
	int same = same_attrs(compare, files[0], files[1], st[0].st_mode, err);

	if (same <= 0)
		return same;
	return S_ISDIR(st[0].st_mode) ? same_dir(compare, files[0], files[1], depth + 1, err)
				      : same_data(compare, files, st, err);
}

static int same_entry(struct compare *compare, const int dirs[2], const char *name, int depth,
		      struct err *err)
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	auto_close int a = -1;
	auto_close int b = -1;
	struct stat st[2];

	if (fstatat(dirs[0], name, &st[0], AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_os(err, errno, "look at a tree");
	if (fstatat(dirs[1], name, &st[1], AT_SYMLINK_NOFOLLOW) < 0)
		return err_os(err, errno, "look at a tree");
	if (!same_stat(&st[0], &st[1]))
		return 0;
	if (S_ISLNK(st[0].st_mode))
		return same_link(dirs[0], dirs[1], name);
	if (!S_ISDIR(st[0].st_mode) && !S_ISREG(st[0].st_mode))
		return 1;
	a = openat(dirs[0], name, flags);
	b = openat(dirs[1], name, flags);
	if (a < 0 || b < 0)
		return err_os(err, errno, "open a file of a tree");
	return same_open(compare, (const int[2]){a, b}, st, depth, err);
}

static int count_entries(int fd, size_t *out, struct err *err)
{
	auto_dir DIR *dir = NULL;
	const struct dirent *entry;

	*out = 0;
	if (fd_open_dir(fd, ".", &dir, err) < 0)
		return -1;
	while ((entry = readdir(dir)))
		*out += !fd_is_dots(entry->d_name);
	return 0;
}

/* Each name of b is in a, and a has no more. */
static int same_dir(struct compare *compare, int a, int b, int depth, struct err *err)
{
	const int dirs[2] = {a, b};
	auto_dir DIR *dir = NULL;
	const struct dirent *entry;
	size_t count;
	size_t seen = 0;

	if (depth > (int)TREE_DEPTH_MAX)
		return 0;
	if (count_entries(a, &count, err) < 0 || fd_open_dir(b, ".", &dir, err) < 0)
		return -1;
	while ((entry = readdir(dir))) {
		int same;

		if (fd_is_dots(entry->d_name))
			continue;
		seen++;
		same = same_entry(compare, dirs, entry->d_name, depth, err);
		if (same <= 0)
			return same;
	}
	return seen == count;
}

static int same_root(struct compare *compare, struct err *err)
{
	const int files[2] = {compare->spec->a, compare->spec->b};
	struct stat st[2];

	if (fstat(files[0], &st[0]) < 0 || fstat(files[1], &st[1]) < 0)
		return err_os(err, errno, "look at a tree");
	return same_stat(&st[0], &st[1]) ? same_open(compare, files, st, -1, err) : 0;
}

int tree_compare(const struct tree_compare_spec *spec, uint64_t *bytes, struct err *err)
{
	auto_free struct compare *compare = calloc(1, sizeof(*compare));
	int same;

	if (!compare)
		abort();
	compare->spec = spec;
	attrs_init(&compare->attrs[0]);
	attrs_init(&compare->attrs[1]);
	same = same_root(compare, err);
	attrs_done(&compare->attrs[0]);
	attrs_done(&compare->attrs[1]);
	*bytes += compare->bytes;
	return same;
}
