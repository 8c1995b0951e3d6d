/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/layers/unpacking.h"

#include <fcntl.h>
#include <unistd.h>

int unpacking_setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	int fd;

	assert_non_null(fixture);
	tarball_init(&fixture->tar);
	fixture->outer = scratch_make(fixture->path);
	assert_int_equal(mkdirat(fixture->outer, "tree", 0755), 0);
	fixture->tree = openat(fixture->outer, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = openat(fixture->outer, "neighbour", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fixture->tree >= 0 && fd >= 0);
	assert_int_equal(close(fd), 0);
	*state = fixture;
	return 0;
}

int unpacking_teardown(void **state)
{
	struct fixture *fixture = *state;

	tarball_done(&fixture->tar);
	(void)close(fixture->tree);
	(void)close(fixture->outer);
	scratch_remove(fixture->path);
	free(fixture);
	return 0;
}

int unpack_with(struct fixture *fixture, const struct unpack_limits *limits, size_t step,
		struct err *err)
{
	struct memory_source source;

	tarball_end(&fixture->tar);
	memory_source_init(&source, buf_str(&fixture->tar.bytes), step);
	return unpack_tar(fixture->tree, &source.source, limits, err);
}

void unpack(struct fixture *fixture)
{
	struct err err;

	check_ok(unpack_with(fixture, NULL, 0, &err), &err);
}

void check_refused(struct fixture *fixture, enum err_kind kind, const char *words)
{
	struct stat stat;
	struct err err = {0};

	check_err(unpack_with(fixture, NULL, 0, &err), &err, kind);
	if (!strstr(err.text, words))
		fail_msg("\"%s\" does not say \"%s\"", err.text, words);
	assert_int_equal(fstatat(fixture->outer, "neighbour", &stat, 0), 0);
	assert_int_equal(stat.st_size, 0);
	assert_int_equal(stat.st_mode & 07777, 0600);
	assert_int_equal(stat.st_nlink, 1);
	assert_int_equal(faccessat(fixture->outer, "x", F_OK, AT_SYMLINK_NOFOLLOW), -1);
}

void check_tree(struct fixture *fixture, const char *expected)
{
	auto_buf struct buf list = BUF_INIT(LISTING_MAX);

	listing_add(fixture->tree, LISTING_NO_ROOT, &list);
	assert_string_equal(buf_str(&list).ptr, expected);
}

struct stat stat_of(struct fixture *fixture, const char *name)
{
	struct stat stat;

	if (fstatat(fixture->tree, name, &stat, AT_SYMLINK_NOFOLLOW) < 0)
		fail_msg("no %s", name);
	return stat;
}
