/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/fd.h"
#include "layers/twin_priv.h"
#include "tests/layers/store_fixture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOLE ((off_t)1024 * 1024)

/* A file of a tree, the one that stands for it, and the comparison. */
struct pair {
	int treefd;
	int file;
	int fresh;
	struct twin twin;
};

static void pair_open(struct pair *pair, const struct store_fixture *fixture, const char *bytes)
{
	const int flags = O_RDWR | O_CREAT | O_CLOEXEC;
	struct err err = {0};

	pair->treefd = open(fixture->parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	pair->file = openat(pair->treefd, "file", flags, 0600);
	pair->fresh = openat(pair->treefd, "fresh", flags, 0600);
	assert_true(pair->fresh >= 0);
	check_ok(fd_write_all(pair->file, bytes, strlen(bytes), &err), &err);
	twin_init(&pair->twin, pair->treefd);
}

static void pair_done(struct pair *pair)
{
	twin_done(&pair->twin);
	auto_close_release(&pair->fresh);
	auto_close_release(&pair->file);
	auto_close_release(&pair->treefd);
}

static ino_t inode(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

static void a_file_of_the_same_bytes_is_known_by_its_inodes(void **state)
{
	struct pair pair;

	pair_open(&pair, *state, "some bytes");
	twin_open(&pair.twin, "file", pair.fresh);
	twin_take(&pair.twin, STR("some "), 0);
	twin_take(&pair.twin, STR("bytes"), 5);
	twin_close(&pair.twin, 10);
	twin_sort(&pair.twin);
	assert_false(pair.twin.differs);
	assert_int_equal(pair.twin.bytes, 10);
	assert_true(twin_has(&pair.twin, inode(pair.fresh), inode(pair.file)));
	assert_false(twin_has(&pair.twin, inode(pair.fresh), inode(pair.treefd)));
	assert_false(twin_has(&pair.twin, inode(pair.file), inode(pair.file)));
	pair_done(&pair);
}

static void other_bytes_and_fewer_of_them_differ(void **state)
{
	static const char *const texts[] = {"some bites", "some bytes and more"};
	struct pair pair;

	pair_open(&pair, *state, "some bytes");
	for (size_t i = 0; i < 2; i++) {
		pair.twin.differs = false;
		twin_open(&pair.twin, "file", pair.fresh);
		twin_take(&pair.twin, str_of(texts[i]), 0);
		twin_close(&pair.twin, (off_t)strlen(texts[i]));
		assert_true(pair.twin.differs);
	}
	pair_done(&pair);
}

static void what_is_no_file_there_differs(void **state)
{
	static const char *const paths[] = {"missing", "link", ".", "../../etc/passwd"};
	struct pair pair;

	pair_open(&pair, *state, "some bytes");
	assert_int_equal(symlinkat("file", pair.treefd, "link"), 0);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		pair.twin.differs = false;
		twin_open(&pair.twin, paths[i], pair.fresh);
		assert_true(pair.twin.differs);
	}
	pair_done(&pair);
}

static void holes_are_compared_and_not_read(void **state)
{
	struct pair pair;
	struct err err = {0};

	pair_open(&pair, *state, "a");
	check_ok(fd_pwrite_all(pair.file, "b", 1, HOLE, &err), &err);
	assert_int_equal(ftruncate(pair.file, 2 * HOLE), 0);
	for (int round = 0; round < 2; round++) {
		twin_open(&pair.twin, "file", pair.fresh);
		twin_take(&pair.twin, STR("a"), 0);
		twin_take(&pair.twin, STR("b"), HOLE);
		twin_close(&pair.twin, 2 * HOLE);
		assert_int_equal(pair.twin.differs, round == 1);
		if (round == 0)
			assert_true(pair.twin.bytes < (uint64_t)HOLE);
		check_ok(fd_pwrite_all(pair.file, "c", 1, HOLE / 2, &err), &err);
	}
	pair_done(&pair);
}

#define twin_test(name) \
	cmocka_unit_test_setup_teardown(name, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		twin_test(a_file_of_the_same_bytes_is_known_by_its_inodes),
		twin_test(other_bytes_and_fewer_of_them_differ),
		twin_test(what_is_no_file_there_differs),
		twin_test(holes_are_compared_and_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
