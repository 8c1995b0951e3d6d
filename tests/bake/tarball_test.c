/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/asker.h"
#include "bake/roots.h"
#include "bake/tarball.h"
#include "layers/blob.h"
#include "tests/layers/blobs.h"
#include "tests/layers/store_fixture.h"

#include <fcntl.h>
#include <sys/xattr.h>

static int open_at(const struct store_fixture *fixture, const char *name, int flags)
{
	char path[96];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", fixture->parent, name);
	fd = open(path, flags | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	return fd;
}

static int file_of(const struct store_fixture *fixture, const char *name, struct str bytes)
{
	int fd = open_at(fixture, name, O_RDWR | O_CREAT | O_TRUNC);

	assert_int_equal(write(fd, bytes.ptr, bytes.len), (ssize_t)bytes.len);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static int take_root(void *ctx, const struct root *root, struct err *err)
{
	struct root *out = ctx;

	(void)err;
	*out = *root;
	return root->kind == ROOT_CONTEXT;
}

static void bytes_are_kept_once_and_named_by_their_digest(void **state)
{
	struct store_fixture *fixture = *state;
	auto_close int fd = file_of(fixture, "a", STR("not looked at yet"));
	struct tarball_info info;
	struct digest expected;
	struct digest tree;
	struct digest got;
	struct root root = {0};
	struct meta *meta = NULL;
	struct err err = {0};

	digest_of(STR("not looked at yet"), &expected);
	check_ok(tarball_put(fixture->store, fd, NULL, &got, &err), &err);
	assert_true(digest_equal(&got, &expected));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	check_ok(tarball_put(fixture->store, fd, NULL, &got, &err), &err);
	assert_true(digest_equal(&got, &expected));
	assert_int_equal(blob_count(fixture->store), 1);
	check_ok(meta_begin(fixture->store, META_READ, &meta, &err), &err);
	assert_int_equal(tarball_find(meta, &got, &info, &err), 1);
	assert_int_equal(info.size, strlen("not looked at yet"));
	assert_int_equal(roots_each(meta, take_root, &root, &err), 1);
	assert_true(digest_equal(&root.digest, &got));
	tarball_tree(&got, &tree);
	assert_true(digest_equal(&root.diff_id, &tree));
	assert_false(digest_equal(&tree, &got));
	meta_abort(meta);
}

static void a_forgotten_context_is_none(void **state)
{
	struct store_fixture *fixture = *state;
	auto_close int fd = file_of(fixture, "a", STR("bytes"));
	struct asker asker = {.store = fixture->store};
	struct meta *meta = NULL;
	struct digest digest;
	struct err err = {0};
	int out = -1;

	check_ok(tarball_put(fixture->store, fd, NULL, &digest, &err), &err);
	check_ok(meta_begin(fixture->store, META_WRITE, &meta, &err), &err);
	assert_int_equal(tarball_forget(meta, &digest, &err), 1);
	assert_int_equal(tarball_forget(meta, &digest, &err), 0);
	check_ok(meta_commit(meta, &err), &err);
	check_err(tarball_open(&asker, &digest, &out, &err), &err, ERR_NOT_FOUND);
	assert_int_equal(out, -1);
}

static void what_is_no_tar_is_refused_by_its_name(void **state)
{
	static const struct {
		struct str bytes;
		const char *says;
	} wrong[] = {
		{STR(""), "it is empty"},
		{STR("BZh91AY"), "it is bzip2"},
		{STR("\xfd"
		     "7zXZ"),
		 "it is xz"},
		{STR("PK\3\4"), "it is a zip archive"},
	};
	struct store_fixture *fixture = *state;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		auto_close int fd = file_of(fixture, "a", wrong[i].bytes);
		struct digest digest;
		struct err err = {0};

		check_err(tarball_put(fixture->store, fd, NULL, &digest, &err), &err, ERR_INVALID);
		assert_non_null(strstr(err.text, wrong[i].says));
	}
	assert_int_equal(blob_count(fixture->store), 0);
}

static void fill_directory(const struct store_fixture *fixture, const char *name, bool backwards)
{
	static const char *const names[] = {"a", "b", "c"};
	auto_close int dirfd = -1;
	char path[96];

	(void)snprintf(path, sizeof(path), "%s/%s", fixture->parent, name);
	assert_int_equal(mkdir(path, backwards ? 0700 : 0755), 0);
	dirfd = open_at(fixture, name, O_RDONLY | O_DIRECTORY);
	for (size_t i = 0; i < 3; i++) {
		const char *file = names[backwards ? 2 - i : i];
		auto_close int fd = openat(dirfd, file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

		assert_int_equal(write(fd, file, 1), 1);
		assert_int_equal(fchmod(fd, 0640), 0);
	}
	assert_int_equal(symlinkat("a", dirfd, "link"), 0);
}

static void equal_directories_are_packed_to_one_digest(void **state)
{
	const struct timespec old[] = {{1000, 5}, {1000, 5}};
	struct store_fixture *fixture = *state;
	struct digest first;
	struct digest second;
	struct err err = {0};

	fill_directory(fixture, "one", false);
	fill_directory(fixture, "two", true);
	auto_close int one = open_at(fixture, "one", O_RDONLY | O_DIRECTORY);
	auto_close int two = open_at(fixture, "two", O_RDONLY | O_DIRECTORY);

	assert_int_equal(utimensat(two, "b", old, 0), 0);
	check_ok(tarball_pack(fixture->store, one, NULL, &first, &err), &err);
	check_ok(tarball_pack(fixture->store, two, NULL, &second, &err), &err);
	assert_true(digest_equal(&first, &second));
	assert_int_equal(blob_count(fixture->store), 1);
	assert_int_equal(fchmodat(two, "b", 0600, 0), 0);
	check_ok(tarball_pack(fixture->store, two, NULL, &second, &err), &err);
	assert_false(digest_equal(&first, &second));
}

#define STORE_TEST(name) \
	cmocka_unit_test_setup_teardown(name, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(bytes_are_kept_once_and_named_by_their_digest),
		STORE_TEST(a_forgotten_context_is_none),
		STORE_TEST(what_is_no_tar_is_refused_by_its_name),
		STORE_TEST(equal_directories_are_packed_to_one_digest),
	};

	return cmocka_run_group_tests_name("bake/tarball", tests, NULL, NULL);
}
