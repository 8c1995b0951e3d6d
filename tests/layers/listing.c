/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/layers/listing.h"

#include "layers/base/fd.h"
#include "layers/digest.h"
#include "tests/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

struct listing {
	struct buf *out;
	unsigned flags;
	struct {
		ino_t ino;
		dev_t dev;
		char path[256];
	} links[256];
	size_t link_count;
};

static void put(struct buf *out, struct str text)
{
	struct err err;

	check_ok(buf_add(out, text, &err), &err);
}

static void put_hex(struct buf *out, const char *bytes, size_t len)
{
	struct err err;

	for (size_t i = 0; i < len; i++)
		check_ok(buf_addf(out, &err, "%02x", (unsigned char)bytes[i]), &err);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void list_xattrs(struct listing *listing, int dirfd, const char *name)
{
	char path[PATH_MAX];
	char names[4096];
	char value[4096];
	char *sorted[64];
	size_t count = 0;
	ssize_t len;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", dirfd, name);
	len = llistxattr(path, names, sizeof(names));
	for (ssize_t at = 0; at < len; at += (ssize_t)strlen(names + at) + 1) {
		if (!(listing->flags & LISTING_MARKS) &&
		    str_starts(str_of(names + at), STR("trusted.hearth.")))
			continue;
		assert_true(count < 64);
		sorted[count++] = names + at;
	}
	qsort(sorted, count, sizeof(sorted[0]), by_text);
	for (size_t i = 0; i < count; i++) {
		ssize_t n = lgetxattr(path, sorted[i], value, sizeof(value));

		put(listing->out, STR(" {"));
		put(listing->out, str_of(sorted[i]));
		put(listing->out, STR("="));
		put_hex(listing->out, value, n > 0 ? (size_t)n : 0);
		put(listing->out, STR("}"));
	}
}

static void list_link(struct listing *listing, const char *path, const struct stat *stat)
{
	/* overlayfs links the whiteouts that it makes */
	if (stat->st_nlink < 2 || S_ISDIR(stat->st_mode) || S_ISCHR(stat->st_mode))
		return;
	for (size_t i = 0; i < listing->link_count; i++) {
		if (listing->links[i].ino == stat->st_ino &&
		    listing->links[i].dev == stat->st_dev) {
			put(listing->out, STR(" linked to "));
			put(listing->out, str_of(listing->links[i].path));
			return;
		}
	}
	assert_true(listing->link_count < 256);
	listing->links[listing->link_count].ino = stat->st_ino;
	listing->links[listing->link_count].dev = stat->st_dev;
	(void)snprintf(listing->links[listing->link_count++].path, 256, "%s", path);
}

static void digest_file(int fd, struct digest *out)
{
	AUTO(hasher) struct hasher hasher;
	char piece[64 * 1024];
	struct err err;
	off_t at = 0;
	ssize_t n;

	hasher_init(&hasher);
	do {
		n = fd_pread_all(fd, piece, sizeof(piece), at, &err);
		check_ok(n, &err);
		hasher_add(&hasher, (struct str){piece, (size_t)n});
		at += n;
	} while (n > 0);
	hasher_final(&hasher, out);
}

static void list_content(struct listing *listing, int dirfd, const char *name,
			 const struct stat *stat)
{
	char text[DIGEST_TEXT_MAX];
	struct digest digest;
	char target[PATH_MAX];
	struct err err;
	ssize_t n;

	if (S_ISLNK(stat->st_mode)) {
		n = readlinkat(dirfd, name, target, sizeof(target));
		assert_true(n > 0);
		put(listing->out, STR(" -> "));
		put(listing->out, (struct str){target, (size_t)n});
	} else if (S_ISREG(stat->st_mode)) {
		auto_close int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);

		digest_file(fd, &digest);
		put(listing->out, STR(" "));
		put(listing->out, str_of(digest_format(&digest, text)));
	} else if (!S_ISDIR(stat->st_mode)) {
		check_ok(buf_addf(listing->out, &err, " %u:%u", major(stat->st_rdev),
				  minor(stat->st_rdev)),
			 &err);
	}
}

static void list_one(struct listing *listing, int dirfd, const char *name, const char *path)
{
	bool times;
	struct stat stat;
	struct err err;

	assert_int_equal(fstatat(dirfd, name, &stat, AT_SYMLINK_NOFOLLOW), 0);
	times = !(listing->flags & LISTING_NO_TIMES) &&
		!(S_ISDIR(stat.st_mode) && (listing->flags & LISTING_NO_DIR_TIMES)) &&
		!(!S_ISREG(stat.st_mode) && (listing->flags & LISTING_FILE_SECONDS));
	check_ok(buf_addf(listing->out, &err, "%s %06o %u:%u", path, stat.st_mode, stat.st_uid,
			  stat.st_gid),
		 &err);
	if (times)
		check_ok(buf_addf(listing->out, &err, " @%lld.%09ld", (long long)stat.st_mtime,
				  listing->flags & LISTING_FILE_SECONDS ? 0 : stat.st_mtim.tv_nsec),
			 &err);
	if (S_ISREG(stat.st_mode))
		check_ok(buf_addf(listing->out, &err, " %lld", (long long)stat.st_size), &err);
	list_content(listing, dirfd, name, &stat);
	list_xattrs(listing, dirfd, name);
	list_link(listing, path, &stat);
	put(listing->out, STR("\n"));
}

static int keep_all_but_dots(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void list_dir(struct listing *listing, int dirfd, const char *prefix)
{
	struct dirent **names;
	int count = scandirat(dirfd, ".", &names, keep_all_but_dots, by_bytes);

	assert_true(count >= 0);
	for (int i = 0; i < count; i++) {
		auto_buf struct buf path = BUF_INIT((size_t)1 << 20);
		const char *name = names[i]->d_name;
		auto_close int fd = -1;
		struct err err;

		check_ok(buf_addf(&path, &err, "%s%s%s", prefix, *prefix ? "/" : "", name), &err);
		list_one(listing, dirfd, name, path.ptr);
		fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0)
			list_dir(listing, fd, path.ptr);
		free(names[i]);
	}
	free(names);
}

void listing_add(int dirfd, unsigned flags, struct buf *out)
{
	auto_free struct listing *listing = calloc(1, sizeof(*listing));

	assert_non_null(listing);
	listing->out = out;
	listing->flags = flags;
	if (!(flags & LISTING_NO_ROOT))
		list_one(listing, dirfd, ".", ".");
	list_dir(listing, dirfd, "");
}

static size_t line_len(const char *text)
{
	return strcspn(text, "\n");
}

void listing_check_text(const char *actual, const char *expected)
{
	const char *x = actual;
	const char *y = expected;

	while (*x && *y && line_len(x) == line_len(y) && memcmp(x, y, line_len(x)) == 0) {
		x += line_len(x) + (x[line_len(x)] != '\0');
		y += line_len(y) + (y[line_len(y)] != '\0');
	}
	if (*x || *y)
		fail_msg("got:\n  %.*s\nexpected:\n  %.*s", (int)line_len(x), x, (int)line_len(y),
			 y);
}

void listing_check_equal(int actual, int expected, unsigned flags)
{
	auto_buf struct buf a = BUF_INIT(LISTING_MAX);
	auto_buf struct buf b = BUF_INIT(LISTING_MAX);

	listing_add(actual, flags, &a);
	listing_add(expected, flags, &b);
	listing_check_text(buf_str(&a).ptr, buf_str(&b).ptr);
}

int scratch_make(char path[static 64])
{
	int fd;

	(void)snprintf(path, 64, "/tmp/layers-test-XXXXXX");
	assert_non_null(mkdtemp(path));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

/* By descriptors, since a test's paths may be longer than the kernel takes. */
static void remove_children(int dirfd)
{
	struct dirent **names;
	int count = scandirat(dirfd, ".", &names, keep_all_but_dots, NULL);

	for (int i = 0; i < count; i++) {
		const char *name = names[i]->d_name;
		auto_close int fd =
			openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (fd >= 0)
			remove_children(fd);
		if (unlinkat(dirfd, name, fd >= 0 ? AT_REMOVEDIR : 0) < 0)
			perror(name);
		free(names[i]);
	}
	if (count >= 0)
		free(names);
}

void scratch_remove(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return;
	remove_children(fd);
	(void)close(fd);
	(void)rmdir(path);
}
