/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/shortcut_priv.h"
#include "tests/layers/store_fixture.h"

#include <fcntl.h>

#define SECOND_NS ((int64_t)1000000000)
#define READ_AT (5000 * SECOND_NS)

static const struct stat plain = {
	.st_dev = 7,
	.st_ino = 11,
	.st_size = 3,
	.st_mode = S_IFREG | 0644,
	.st_uid = 1,
	.st_gid = 2,
	.st_mtim = {1000, 1},
	.st_ctim = {2000, 1},
};

static int open_context(const struct store_fixture *fixture, const char *name)
{
	char path[96];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", fixture->parent, name);
	(void)mkdir(path, 0755);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static bool remember(const struct store_fixture *fixture, int contextfd, const struct stat *st,
		     int64_t read_at)
{
	AUTO(shortcut) struct shortcut *shortcut = shortcut_open(fixture->store, contextfd);
	struct digest what;

	digest_of(STR("what"), &what);
	shortcut_add(shortcut, st, read_at, &what);
	return shortcut_keep(shortcut);
}

static bool knows(const struct store_fixture *fixture, int contextfd, const struct stat *st)
{
	AUTO(shortcut) struct shortcut *shortcut = shortcut_open(fixture->store, contextfd);
	struct digest what;
	struct digest expected;

	digest_of(STR("what"), &expected);
	if (!shortcut_find(shortcut, st, &what))
		return false;
	assert_true(digest_equal(&what, &expected));
	return true;
}

static void a_file_is_known_until_anything_of_it_changes(void **state)
{
	struct store_fixture *fixture = *state;
	auto_close int contextfd = open_context(fixture, "c");
	struct stat other[10];

	assert_false(knows(fixture, contextfd, &plain));
	assert_true(remember(fixture, contextfd, &plain, READ_AT));
	assert_true(knows(fixture, contextfd, &plain));
	for (size_t i = 0; i < 10; i++)
		other[i] = plain;
	other[0].st_dev++;
	other[1].st_ino++;
	other[2].st_size++;
	other[3].st_mode ^= 1;
	other[4].st_uid++;
	other[5].st_gid++;
	other[6].st_mtim.tv_nsec++;
	other[7].st_mtim.tv_sec--;
	other[8].st_ctim.tv_nsec++;
	other[9].st_ctim.tv_sec++;
	for (size_t i = 0; i < 10; i++)
		assert_false(knows(fixture, contextfd, &other[i]));
}

static void what_changed_just_before_it_was_read_is_not_remembered(void **state)
{
	struct store_fixture *fixture = *state;
	auto_close int contextfd = open_context(fixture, "c");
	struct stat young = plain;
	struct stat future = plain;
	struct stat coarse = plain;

	young.st_ctim = (struct timespec){4999, SECOND_NS - 1000000}; /* a millisecond before */
	assert_false(remember(fixture, contextfd, &young, READ_AT));
	assert_false(knows(fixture, contextfd, &young));
	future.st_mtim.tv_sec = 6000;
	assert_false(remember(fixture, contextfd, &future, READ_AT));
	coarse.st_ctim = (struct timespec){4999, 0}; /* may mean 4998 to 5000 */
	assert_false(remember(fixture, contextfd, &coarse, READ_AT));
	coarse.st_ctim.tv_sec = 4990;
	assert_true(remember(fixture, contextfd, &coarse, READ_AT));
	young.st_ctim.tv_nsec = SECOND_NS / 2;
	assert_true(remember(fixture, contextfd, &young, READ_AT));
	assert_true(knows(fixture, contextfd, &young));
}

static void nothing_is_written_where_nothing_was_read(void **state)
{
	struct store_fixture *fixture = *state;
	auto_close int contextfd = open_context(fixture, "c");
	AUTO(shortcut) struct shortcut *shortcut = shortcut_open(fixture->store, contextfd);
	struct digest what;

	assert_false(shortcut_keep(shortcut));
	assert_int_equal(faccessat(store_dirfd(fixture->store, STORE_ROOT), "contexts", F_OK, 0),
			 -1);
	assert_true(remember(fixture, contextfd, &plain, READ_AT));
	shortcut_close(shortcut);
	shortcut = shortcut_open(fixture->store, contextfd);
	assert_true(shortcut_find(shortcut, &plain, &what));
	assert_false(shortcut_keep(shortcut));
}

/* T3: what one bake reads does not drop what another has read. */
static void files_of_several_bakes_stay_known(void **state)
{
	struct store_fixture *fixture = *state;
	auto_close int contextfd = open_context(fixture, "c");
	auto_close int elsewhere = open_context(fixture, "d");
	struct stat st = plain;

	for (ino_t ino = 100; ino > 0; ino -= 2) { /* and not in their order */
		st.st_ino = ino;
		assert_true(remember(fixture, contextfd, &st, READ_AT));
	}
	for (ino_t ino = 1; ino <= 101; ino++) {
		st.st_ino = ino;
		assert_int_equal(knows(fixture, contextfd, &st), ino % 2 == 0);
		assert_false(knows(fixture, elsewhere, &st));
	}
	st.st_ino = 50;
	st.st_size = 4;
	assert_true(remember(fixture, contextfd, &st, READ_AT));
	assert_true(knows(fixture, contextfd, &st));
	st.st_size = 3;
	assert_false(knows(fixture, contextfd, &st));
}

static void table_path(const struct store_fixture *fixture, char out[static 400])
{
	auto_dir DIR *dir = NULL;
	struct dirent *entry;
	struct err err = {0};

	check_ok(fd_open_dir(store_dirfd(fixture->store, STORE_ROOT), "contexts", &dir, &err),
		 &err);
	while ((entry = readdir(dir))) {
		if (!fd_is_dots(entry->d_name))
			(void)snprintf(out, 400, "%s/contexts/%s", fixture->path, entry->d_name);
	}
}

static void a_damaged_table_is_none(void **state)
{
	struct store_fixture *fixture = *state;
	auto_close int contextfd = open_context(fixture, "c");
	char path[400] = "";
	struct stat st;

	for (off_t at = 0; at < 150; at += 11) {
		unsigned char byte;
		int fd;

		assert_true(remember(fixture, contextfd, &plain, READ_AT));
		table_path(fixture, path);
		fd = open(path, O_RDWR | O_CLOEXEC);
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= 0x10;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		(void)close(fd);
		assert_false(knows(fixture, contextfd, &plain));
	}
	assert_true(remember(fixture, contextfd, &plain, READ_AT));
	assert_int_equal(stat(path, &st), 0);
	while (st.st_size > 0) {
		assert_int_equal(truncate(path, --st.st_size), 0);
		assert_false(knows(fixture, contextfd, &plain));
	}
	assert_true(remember(fixture, contextfd, &plain, READ_AT));
	assert_true(knows(fixture, contextfd, &plain));
}

static size_t count_tables(const struct store_fixture *fixture)
{
	auto_dir DIR *dir = NULL;
	struct dirent *entry;
	struct err err = {0};
	size_t n = 0;

	check_ok(fd_open_dir(store_dirfd(fixture->store, STORE_ROOT), "contexts", &dir, &err),
		 &err);
	while ((entry = readdir(dir)))
		n += !fd_is_dots(entry->d_name);
	return n;
}

static void tables_have_a_ceiling_and_an_age(void **state)
{
	const struct timespec old[] = {{1000, 0}, {1000, 0}};
	struct store_fixture *fixture = *state;
	char path[400] = "";

	for (int i = 0; i < SHORTCUT_TABLES_MAX + 5; i++) {
		char name[16];
		auto_close int contextfd = -1;

		(void)snprintf(name, sizeof(name), "c%d", i);
		contextfd = open_context(fixture, name);
		assert_true(remember(fixture, contextfd, &plain, READ_AT));
	}
	assert_int_equal(count_tables(fixture), SHORTCUT_TABLES_MAX);
	table_path(fixture, path);
	assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);

	auto_close int contextfd = open_context(fixture, "c3000");

	assert_true(remember(fixture, contextfd, &plain, READ_AT));
	assert_int_equal(faccessat(AT_FDCWD, path, F_OK, 0), -1);
	assert_true(knows(fixture, contextfd, &plain));
}

#define STORE_TEST(name) \
	cmocka_unit_test_setup_teardown(name, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(a_file_is_known_until_anything_of_it_changes),
		STORE_TEST(what_changed_just_before_it_was_read_is_not_remembered),
		STORE_TEST(nothing_is_written_where_nothing_was_read),
		STORE_TEST(files_of_several_bakes_stay_known),
		STORE_TEST(a_damaged_table_is_none),
		STORE_TEST(tables_have_a_ceiling_and_an_age),
	};

	return cmocka_run_group_tests_name("bake/shortcut", tests, NULL, NULL);
}
