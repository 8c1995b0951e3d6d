/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/fd.h"
#include "tests/check.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

static void a_directory_is_made_once(void **state)
{
	char path[] = "/tmp/hearth-fd-XXXXXX";
	auto_close int rootfd = -1;
	auto_close int made = -1;
	auto_close int again = -1;
	struct err err = {0};
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(path));
	rootfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	made = fd_make_dir(rootfd, "a", &err);
	check_ok(made, &err);
	assert_int_equal(fstat(made, &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	again = fd_make_dir(rootfd, "a", &err);
	check_ok(again, &err);
	assert_int_equal(symlinkat("a", rootfd, "b"), 0);
	check_err(fd_make_dir(rootfd, "b", &err), &err, ERR_OS); /* somewhere else */
	check_err(fd_make_dir(rootfd, "c/d", &err), &err, ERR_OS);
	assert_int_equal(unlinkat(rootfd, "b", 0), 0);
	assert_int_equal(unlinkat(rootfd, "a", AT_REMOVEDIR), 0);
	assert_int_equal(rmdir(path), 0);
}

static void reading_at_an_offset_gives_all_that_there_is(void **state)
{
	auto_close int fd = memfd_create("file", MFD_CLOEXEC);
	char bytes[8] = "";
	struct err err = {0};

	(void)state;
	check_ok(fd_write_all(fd, "0123456789", 10, &err), &err);
	assert_int_equal(fd_pread_all(fd, bytes, 4, 3, &err), 4);
	assert_memory_equal(bytes, "3456", 4);
	assert_int_equal(fd_pread_all(fd, bytes, sizeof(bytes), 8, &err), 2);
	assert_memory_equal(bytes, "89", 2);
	assert_int_equal(fd_pread_all(fd, bytes, sizeof(bytes), 10, &err), 0);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 10); /* the offset is left alone */
}

static void reading_what_cannot_be_read_says_why(void **state)
{
	auto_close int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err err = {0};
	char byte;

	(void)state;
	check_err(fd_pread_all(fd, &byte, 1, 0, &err), &err, ERR_OS);
	assert_int_equal(err.os, EISDIR);
}

/* Whatever piece of a block is given, zeros are no data. */
static void blocks_of_zeros_become_holes(void **state)
{
	static const size_t steps[] = {20000, 4096, 777, 1};
	static char bytes[20000];
	static char got[20000];
	struct stat stat;
	struct err err;

	(void)state;
	bytes[0] = bytes[4095] = bytes[8192 + 17] = bytes[19999] = 'x';
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		auto_close int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

		for (size_t at = 0; at < sizeof(bytes); at += steps[i]) {
			size_t n = at + steps[i] < sizeof(bytes) ? steps[i] : sizeof(bytes) - at;

			check_ok(fd_pwrite_sparse(fd, bytes + at, n, (off_t)at, &err), &err);
		}
		assert_int_equal(fstat(fd, &stat), 0);
		assert_int_equal(stat.st_blocks, 24);
		assert_int_equal(pread(fd, got, sizeof(got), 0), sizeof(got));
		assert_memory_equal(got, bytes, sizeof(got));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_directory_is_made_once),
		cmocka_unit_test(reading_at_an_offset_gives_all_that_there_is),
		cmocka_unit_test(reading_what_cannot_be_read_says_why),
		cmocka_unit_test(blocks_of_zeros_become_holes),
	};

	return cmocka_run_group_tests_name("layers/fd", tests, NULL, NULL);
}
