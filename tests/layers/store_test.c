/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/blob.h"
#include "layers/meta.h"
#include "layers/store_priv.h"
#include "tests/layers/blobs.h"
#include "tests/layers/store_fixture.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#define STRANGER ((uid_t)12345)

static int open_at(struct store_fixture *fixture, bool create, struct err *err)
{
	struct store_options options = {
		.path = fixture->path, .map_bytes = STORE_FIXTURE_MAP, .create = create};

	store_close(fixture->store);
	fixture->store = NULL;
	return store_open(&options, &fixture->store, err);
}

/* Close the store and put these bytes into a file of its directory. */
static void overwrite(struct store_fixture *fixture, const char *name, struct str bytes)
{
	char path[128];
	auto_close int fd = -1;
	struct err err = {0};

	store_close(fixture->store);
	fixture->store = NULL;
	(void)snprintf(path, sizeof(path), "%s/%s", fixture->path, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	check_ok(fd_write_all(fd, bytes.ptr, bytes.len, &err), &err);
}

static void a_new_store_is_ours_alone_and_has_its_directories(void **state)
{
	static const char *const names[] = {"meta",  "blobs", "trees", "machines", "tmp",
					    "trash", "run",   "lock",  "VERSION"};
	struct store_fixture *fixture = *state;
	int root = store_dirfd(fixture->store, STORE_ROOT);
	struct stat st;

	assert_int_equal(fstat(root, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(faccessat(root, names[i], F_OK, 0), 0);
	assert_string_equal(store_path(fixture->store), fixture->path);
	assert_int_equal(store_map_bytes(fixture->store), STORE_FIXTURE_MAP);
}

static void without_create_nothing_is_made(void **state)
{
	struct store_fixture *fixture = *state;
	struct err err = {0};

	(void)snprintf(fixture->path, sizeof(fixture->path), "%s/none", fixture->parent);
	check_err(open_at(fixture, false, &err), &err, ERR_NOT_FOUND);
	assert_int_equal(mkdir(fixture->path, 0700), 0);
	check_err(open_at(fixture, false, &err), &err, ERR_NOT_FOUND);
	assert_int_equal(rmdir(fixture->path), 0); /* it is still empty */
}

static void a_store_below_nothing_is_not_made(void **state)
{
	struct store_fixture *fixture = *state;
	struct err err = {0};

	(void)snprintf(fixture->path, sizeof(fixture->path), "%s/a/b", fixture->parent);
	check_err(open_at(fixture, true, &err), &err, ERR_NOT_FOUND);
}

static void a_relative_path_is_refused(void **state)
{
	struct store_fixture *fixture = *state;
	struct err err = {0};

	memcpy(fixture->path, "data", sizeof("data"));
	check_err(open_at(fixture, true, &err), &err, ERR_INVALID);
}

static void somebodys_directory_is_not_made_a_store(void **state)
{
	struct store_fixture *fixture = *state;
	char file[64];
	struct err err = {0};

	(void)snprintf(fixture->path, sizeof(fixture->path), "%s/home", fixture->parent);
	(void)snprintf(file, sizeof(file), "%s/thesis", fixture->path);
	assert_int_equal(mkdir(fixture->path, 0700), 0);
	assert_int_equal(mkdir(file, 0700), 0);
	check_err(open_at(fixture, true, &err), &err, ERR_INVALID);
	assert_int_equal(rmdir(file), 0);
	check_ok(open_at(fixture, true, &err), &err); /* an empty one is */
}

static void a_store_whose_lock_was_removed_gets_another(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest digest;
	struct err err = {0};

	check_ok(blob_put(fixture->store, STR("kept"), &digest, &err), &err);
	for (int create = 0; create <= 1; create++) {
		assert_int_equal(unlinkat(store_dirfd(fixture->store, STORE_ROOT), "lock", 0), 0);
		check_ok(open_at(fixture, create, &err), &err);
		check_ok(blob_check(fixture->store, &digest, &err), &err);
		assert_int_equal(
			faccessat(store_dirfd(fixture->store, STORE_ROOT), "lock", F_OK, 0), 0);
	}
}

static void what_is_no_store_says_what_it_lacks(void **state)
{
	struct store_fixture *fixture = *state;
	int root = store_dirfd(fixture->store, STORE_ROOT);
	struct err err = {0};

	assert_int_equal(unlinkat(root, "lock", 0), 0);
	assert_int_equal(unlinkat(root, "VERSION", 0), 0);
	check_err(open_at(fixture, true, &err), &err, ERR_INVALID);
	assert_non_null(strstr(err.text, "neither VERSION nor lock"));
}

static void a_store_of_another_format_is_refused_untouched(void **state)
{
	static const char *const others[] = {"2\n", "0\n", "", "1", "1\n1\n", "hello \x1b[0m\n"};
	struct store_fixture *fixture = *state;
	char path[64];
	struct err err = {0};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct stat before;
		struct stat after;

		overwrite(fixture, "VERSION", str_of(others[i]));
		(void)snprintf(path, sizeof(path), "%s/meta/lock.mdb", fixture->path);
		assert_int_equal(stat(path, &before), 0);
		check_err(open_at(fixture, true, &err), &err, ERR_CORRUPT);
		assert_non_null(strstr(err.text, "format"));
		assert_null(strchr(err.text, '\x1b'));
		assert_int_equal(stat(path, &after), 0);
		assert_memory_equal(&before.st_ctim, &after.st_ctim, sizeof(after.st_ctim));
	}
}

static void a_directory_that_others_may_enter_is_refused(void **state)
{
	struct store_fixture *fixture = *state;
	struct err err = {0};

	assert_int_equal(chmod(fixture->path, 0750), 0);
	check_err(open_at(fixture, true, &err), &err, ERR_DENIED);
	assert_int_equal(chmod(fixture->path, 0701), 0);
	check_err(open_at(fixture, false, &err), &err, ERR_DENIED);
	assert_int_equal(chmod(fixture->path, 0700), 0);
	check_ok(open_at(fixture, false, &err), &err);
}

static void a_directory_of_somebody_else_is_refused(void **state)
{
	struct store_fixture *fixture = *state;
	struct err err = {0};

	if (chown(fixture->path, STRANGER, (gid_t)-1) < 0)
		skip(); /* only root may give things away */
	check_err(open_at(fixture, true, &err), &err, ERR_DENIED);
}

/* Opening, or the first thing that needs blobs/, says what is wrong. */
static void check_corrupt(struct store_fixture *fixture, const char *file)
{
	struct digest digest;
	struct err err = {0};

	if (open_at(fixture, true, &err) == 0)
		assert_int_equal(blob_put(fixture->store, STR("x"), &digest, &err), -1);
	assert_int_equal(err.kind, ERR_CORRUPT);
	assert_non_null(strstr(err.text, file));
}

static void a_lost_database_is_corrupt_and_not_made_anew(void **state)
{
	struct store_fixture *fixture = *state;

	overwrite(fixture, "blobs/data.mdb", STR(""));
	check_corrupt(fixture, "blobs/data.mdb");
	overwrite(fixture, "meta/data.mdb", STR(""));
	check_corrupt(fixture, "meta/data.mdb");
}

static void a_foreign_database_is_corrupt(void **state)
{
	struct store_fixture *fixture = *state;
	char junk[16384];

	memset(junk, 'j', sizeof(junk));
	overwrite(fixture, "blobs/data.mdb", (struct str){junk, sizeof(junk)});
	check_corrupt(fixture, "/blobs");
	overwrite(fixture, "meta/data.mdb", (struct str){junk, sizeof(junk)});
	check_corrupt(fixture, "/meta");
}

static void check_truncated(struct store_fixture *fixture, const char *file, off_t left)
{
	char path[128];

	store_close(fixture->store);
	fixture->store = NULL;
	(void)snprintf(path, sizeof(path), "%s/%s", fixture->path, file);
	assert_int_equal(truncate(path, left), 0);
	check_corrupt(fixture, "remove the data directory");
}

static void put_something_large(struct store_fixture *fixture)
{
	static char large[1 << 20];
	AUTO(json) json_t *record = NULL;
	AUTO(meta) struct meta *meta = NULL;
	struct digest digest;
	struct err err = {0};

	for (size_t i = 0; i < sizeof(large); i++)
		large[i] = (char)('a' + (i * i >> 13) % 26);
	record = json_pack("{s:i, s:s%}", "v", 1, "text", large, (size_t)100000);
	check_ok(blob_put(fixture->store, (struct str){large, sizeof(large)}, &digest, &err), &err);
	check_ok(meta_begin(fixture->store, META_WRITE, &meta, &err), &err);
	check_ok(meta_put(meta, "t", STR("large"), record, &err), &err);
	check_ok(meta_commit(steal_ptr(&meta), &err), &err);
}

static void a_truncated_database_is_corrupt_and_says_what_to_do(void **state)
{
	static const char *const files[] = {"blobs/data.mdb", "meta/data.mdb"};
	static const off_t left[] = {40000, 20000, 8192, 4096, 100};
	struct store_fixture *fixture = *state;

	put_something_large(fixture);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		for (size_t j = 0; j < sizeof(left) / sizeof(left[0]); j++)
			check_truncated(fixture, files[i], left[j]);
	}
}

/* LMDB counts what a transaction takes from the end and gives back, and does not write it. */
static void put_in_vain(const struct db *db, MDB_dbi table, struct str value)
{
	MDB_val key = db_val(STR("in vain"));
	MDB_txn *txn;
	struct err err = {0};

	check_ok(db_begin(db, DB_WRITE, &txn, &err), &err);
	check_ok(db_put(db, txn, table, STR("k"), value, &err), &err);
	check_ok(db_put(db, txn, table, STR("in vain"), value, &err), &err);
	assert_int_equal(mdb_del(txn, table, &key, NULL), 0);
	check_ok(db_commit(db, txn, &err), &err);
}

static void what_was_never_written_is_not_taken_for_truncated(void **state)
{
	static const size_t sizes[] = {20000, 10, 10, 10, 400000};
	static char value[400000];
	struct store_fixture *fixture = *state;
	struct err err = {0};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		put_in_vain(&fixture->store->meta, fixture->store->records,
			    (struct str){value, sizes[i]});
	check_ok(open_at(fixture, false, &err), &err);
}

static void a_full_map_is_a_full_store_that_still_reads(void **state)
{
	struct store_fixture *fixture = *state;
	struct store_options options = {.path = fixture->path, .map_bytes = 4 << 20};
	static char big[8 << 20];
	struct digest small;
	struct digest digest;
	struct err err = {0};

	store_close(fixture->store);
	fixture->store = NULL;
	check_ok(store_open(&options, &fixture->store, &err), &err);
	check_ok(blob_put(fixture->store, STR("small"), &small, &err), &err);
	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (char)(i >> 15); /* no two chunks alike */
	check_err(blob_put(fixture->store, (struct str){big, sizeof(big)}, &digest, &err), &err,
		  ERR_FULL);
	check_ok(blob_check(fixture->store, &small, &err), &err);
	check_ok(blob_put(fixture->store, STR("fits"), &digest, &err), &err);
	check_ok(blob_check(fixture->store, &digest, &err), &err);
}

static bool session_is_open(struct store_fixture *fixture)
{
	auto_close int fd = openat(store_dirfd(fixture->store, STORE_ROOT), "blobs/sessions",
				   O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	return flock(fd, LOCK_EX | LOCK_NB) < 0;
}

static void a_collector_sees_whether_anybody_writes(void **state)
{
	struct store_fixture *fixture = *state;
	struct blob_writer *writer;
	struct err err = {0};

	assert_false(session_is_open(fixture));
	check_ok(blob_writer_open(fixture->store, &writer, &err), &err);
	assert_true(session_is_open(fixture));
	blob_writer_close(writer);
	assert_false(session_is_open(fixture));
}

static void an_open_store_is_known_by_its_lock(void **state)
{
	struct store_fixture *fixture = *state;
	char path[64];
	auto_close int fd = -1;

	(void)snprintf(path, sizeof(path), "%s/lock", fixture->path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), -1);
	store_close(fixture->store);
	fixture->store = NULL;
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
}

/* A fully cached bake must not write: not even to the access to a new table. */
static void opening_and_reading_writes_nothing(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(meta) struct meta *meta = NULL;
	struct blob_info info;
	struct digest digest;
	char path[64];
	struct stat before;
	struct stat after;
	struct err err = {0};

	check_ok(blob_put(fixture->store, STR("x"), &digest, &err), &err);
	(void)snprintf(path, sizeof(path), "%s/meta/data.mdb", fixture->path);
	assert_int_equal(stat(path, &before), 0);
	check_ok(open_at(fixture, false, &err), &err);
	check_ok(meta_begin(fixture->store, META_READ, &meta, &err), &err);
	assert_int_equal(meta_has(meta, "never written", STR("x"), &err), 0);
	assert_int_equal(blob_find(fixture->store, &digest, &info, &err), 1);
	assert_int_equal(stat(path, &after), 0);
	assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof(after.st_mtim));
	assert_memory_equal(&before.st_ctim, &after.st_ctim, sizeof(after.st_ctim));
}

static void no_child_inherits_a_descriptor(void **state)
{
	struct store_fixture *fixture = *state;
	const struct store_blobs *blobs;
	auto_dir DIR *dir = NULL;
	struct dirent *entry;
	struct err err = {0};

	check_ok(store_blobs(fixture->store, &blobs, &err), &err);
	check_ok(fd_open_dir(AT_FDCWD, "/proc/self/fd", &dir, &err), &err);
	while ((entry = readdir(dir))) {
		char target[128] = "";

		if (readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1) > 0 &&
		    strstr(target, fixture->path))
			assert_true(fcntl((int)strtoimax(entry->d_name, NULL, 10), F_GETFD) &
				    FD_CLOEXEC);
	}
}

#define STORE_TEST(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(a_new_store_is_ours_alone_and_has_its_directories),
		STORE_TEST(without_create_nothing_is_made),
		STORE_TEST(a_store_below_nothing_is_not_made),
		STORE_TEST(a_relative_path_is_refused),
		STORE_TEST(somebodys_directory_is_not_made_a_store),
		STORE_TEST(a_store_whose_lock_was_removed_gets_another),
		STORE_TEST(what_is_no_store_says_what_it_lacks),
		STORE_TEST(a_store_of_another_format_is_refused_untouched),
		STORE_TEST(a_directory_that_others_may_enter_is_refused),
		STORE_TEST(a_directory_of_somebody_else_is_refused),
		STORE_TEST(a_lost_database_is_corrupt_and_not_made_anew),
		STORE_TEST(a_foreign_database_is_corrupt),
		STORE_TEST(a_truncated_database_is_corrupt_and_says_what_to_do),
		STORE_TEST(what_was_never_written_is_not_taken_for_truncated),
		STORE_TEST(a_full_map_is_a_full_store_that_still_reads),
		STORE_TEST(a_collector_sees_whether_anybody_writes),
		STORE_TEST(an_open_store_is_known_by_its_lock),
		STORE_TEST(opening_and_reading_writes_nothing),
		STORE_TEST(no_child_inherits_a_descriptor),
	};

	return cmocka_run_group_tests_name("layers/store", tests, NULL, NULL);
}
