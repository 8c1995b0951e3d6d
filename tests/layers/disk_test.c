/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/disk.h"

#include "layers/base/fd.h"
#include "tests/layers/store_fixture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

struct sums {
	uint64_t all;
	uint64_t trees;
	uint64_t tree; /* trees/one */
};

static int add(void *ctx, const struct disk_entry *entry, struct err *err)
{
	struct sums *sums = ctx;

	(void)err;
	sums->all += entry->bytes;
	if (strcmp(entry->dir, "trees") == 0)
		sums->trees += entry->bytes;
	if (strcmp(entry->dir, "trees") == 0 && strcmp(entry->name, "one") == 0)
		sums->tree = entry->bytes;
	return 0;
}

static struct sums count(struct store *store)
{
	struct sums sums = {0};
	struct err err = {0};

	check_ok(disk_each(store, NULL, add, &sums, &err), &err);
	return sums;
}

static void make_file(int dirfd, const char *name, size_t bytes, off_t at)
{
	auto_close int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	auto_free char *data = malloc(bytes);
	struct err err = {0};

	assert_true(fd >= 0 && data);
	memset(data, 1, bytes);
	check_ok(fd_pwrite_all(fd, data, bytes, at, &err), &err);
	assert_int_equal(fsync(fd), 0); /* else blocks may be counted late */
}

static void blocks_are_counted_once_and_holes_not_at_all(void **state)
{
	struct store_fixture *fixture = *state;
	int trees = store_dirfd(fixture->store, STORE_TREES);
	struct sums before = count(fixture->store);
	auto_close int deep = -1;
	struct sums after;

	assert_int_equal(mkdirat(trees, "one", 0700), 0);
	assert_int_equal(mkdirat(trees, "one/deep", 0700), 0);
	deep = openat(trees, "one/deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	make_file(deep, "plain", 1 << 20, 0);
	make_file(deep, "sparse", 4096, 64 << 20);
	assert_int_equal(linkat(deep, "plain", trees, "one/again", 0), 0);
	assert_int_equal(symlinkat("/", deep, "link"), 0);
	after = count(fixture->store);
	assert_true(after.tree >= (1 << 20) + 4096);
	assert_true(after.tree < (1 << 20) + 65536);
	assert_int_equal(after.all - before.all, after.trees - before.trees);
	assert_true(after.trees - before.trees >= after.tree);
}

static void a_cancel_ends_it(void **state)
{
	struct store_fixture *fixture = *state;
	struct cancel cancel;
	struct sums sums = {0};
	struct err err = {0};

	check_ok(cancel_init(&cancel, &err), &err);
	cancel_raise(&cancel);
	assert_int_equal(mkdirat(store_dirfd(fixture->store, STORE_TREES), "one", 0700), 0);
	check_err(disk_each(fixture->store, &cancel, add, &sums, &err), &err, ERR_CANCELLED);
	cancel_done(&cancel);
}

#define STORE_TEST(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(blocks_are_counted_once_and_holes_not_at_all),
		STORE_TEST(a_cancel_ends_it),
	};

	return cmocka_run_group_tests_name("layers/disk", tests, NULL, NULL);
}
