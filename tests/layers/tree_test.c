/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/tree.h"
#include "tests/layers/store_fixture.h"

#include <fcntl.h>
#include <sys/stat.h>

static struct digest named(const char *text)
{
	struct digest digest;

	digest_of(str_of(text), &digest);
	return digest;
}

/* A directory `name` in the staging directory, with one file that tells it from others. */
static void make(const struct staging *staging, const char *name, const char *mark)
{
	auto_close int dirfd = -1;
	auto_close int fd = -1;

	assert_int_equal(mkdirat(staging->fd, name, 0755), 0);
	dirfd = openat(staging->fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = openat(dirfd, mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
}

static bool tree_has(struct store *store, const struct digest *diff_id, const char *mark)
{
	char hex[DIGEST_HEX_MAX];
	char path[DIGEST_HEX_MAX + 32];

	(void)snprintf(path, sizeof(path), "%s/%s", digest_hex(diff_id, hex), mark);
	return faccessat(store_dirfd(store, STORE_TREES), path, F_OK, 0) == 0;
}

static void adopt(struct store *store, const struct digest *diff_id, const char *mark)
{
	auto_staging struct staging staging = STAGING_INIT;
	struct err err = {0};

	check_ok(staging_open(store, &staging, &err), &err);
	make(&staging, "tree", mark);
	check_ok(tree_adopt(store, diff_id, staging.fd, "tree", &err), &err);
	assert_int_equal(faccessat(staging.fd, "tree", F_OK, 0), -1);
}

/* The tree's record, with its boot id replaced: as after a restart of the machine. */
static void pretend_another_boot(struct store *store, const struct digest *diff_id)
{
	static const char *const tables[] = {"trees", "trees.unsynced"};
	char hex[DIGEST_HEX_MAX];
	struct str key = str_of(digest_hex(diff_id, hex));
	struct meta *meta;
	struct err err = {0};

	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	for (size_t i = 0; i < 2; i++) {
		AUTO(json) json_t *record = NULL;

		assert_int_equal(meta_get(meta, tables[i], key, &record, &err), 1);
		assert_int_equal(json_object_set_new(record, "boot", json_string("another")), 0);
		check_ok(meta_put(meta, tables[i], key, record, &err), &err);
	}
	check_ok(meta_commit(meta, &err), &err);
}

static void an_adopted_tree_is_found(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest id = named("a");
	struct err err = {0};

	assert_int_equal(tree_find(fixture->store, &id, &err), 0);
	adopt(fixture->store, &id, "mark");
	assert_int_equal(tree_find(fixture->store, &id, &err), 1);
	assert_true(tree_has(fixture->store, &id, "mark"));
	assert_int_equal(tree_find(store_fixture_reopen(fixture, false), &id, &err), 1);
}

static void who_was_faster_stays(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest id = named("a");

	adopt(fixture->store, &id, "first");
	adopt(fixture->store, &id, "second");
	assert_true(tree_has(fixture->store, &id, "first"));
	assert_false(tree_has(fixture->store, &id, "second"));
}

static void a_record_without_its_directory_is_a_miss(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest id = named("a");
	char hex[DIGEST_HEX_MAX];
	struct err err = {0};

	adopt(fixture->store, &id, "lost");
	check_ok(tree_settle(fixture->store, &err), &err);
	check_ok(store_discard(fixture->store, store_dirfd(fixture->store, STORE_TREES),
			       digest_hex(&id, hex), &err),
		 &err);
	assert_int_equal(tree_find(fixture->store, &id, &err), 0);
	adopt(fixture->store, &id, "made again");
	assert_int_equal(tree_find(fixture->store, &id, &err), 1);
	pretend_another_boot(fixture->store, &id); /* it must be unsynced again */
	assert_int_equal(tree_find(fixture->store, &id, &err), 0);
}

static void a_placed_tree_is_a_miss_until_recorded(void **state)
{
	struct store_fixture *fixture = *state;
	auto_staging struct staging staging = STAGING_INIT;
	struct digest id = named("a");
	struct meta *meta;
	struct err err = {0};

	check_ok(staging_open(fixture->store, &staging, &err), &err);
	make(&staging, "tree", "mark");
	check_ok(tree_place(fixture->store, &id, staging.fd, "tree", &err), &err);
	assert_int_equal(tree_find(fixture->store, &id, &err), 0);
	check_ok(store_sweep(fixture->store, NULL, &err), &err);
	check_ok(meta_begin(fixture->store, META_WRITE, &meta, &err), &err);
	check_ok(tree_record(meta, fixture->store, &id, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
	assert_int_equal(tree_find(fixture->store, &id, &err), 1);
}

static void a_tree_placed_by_one_who_died_is_taken_over(void **state)
{
	struct store_fixture *fixture = *state;
	auto_staging struct staging staging = STAGING_INIT;
	struct digest id = named("a");
	struct err err = {0};

	check_ok(staging_open(fixture->store, &staging, &err), &err);
	make(&staging, "tree", "died");
	check_ok(tree_place(fixture->store, &id, staging.fd, "tree", &err), &err);
	adopt(fixture->store, &id, "late");
	assert_int_equal(tree_find(fixture->store, &id, &err), 1);
	assert_true(tree_has(fixture->store, &id, "died"));
}

static void an_unsynced_tree_of_another_boot_is_a_miss_and_swept(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest id = named("a");
	struct digest other = named("b");
	struct err err = {0};

	adopt(fixture->store, &id, "maybe empty");
	adopt(fixture->store, &other, "fine");
	pretend_another_boot(fixture->store, &id);
	assert_int_equal(tree_find(fixture->store, &id, &err), 0);
	check_ok(store_sweep(fixture->store, NULL, &err), &err);
	assert_false(tree_has(fixture->store, &id, "maybe empty"));
	assert_int_equal(tree_find(fixture->store, &other, &err), 1);
	adopt(fixture->store, &id, "anew");
	assert_int_equal(tree_find(fixture->store, &id, &err), 1);
	assert_true(tree_has(fixture->store, &id, "anew"));
}

static void a_settled_tree_survives_another_boot(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest id = named("a");
	char hex[DIGEST_HEX_MAX];
	AUTO(meta) struct meta *meta = NULL;
	AUTO(json) json_t *record = NULL;
	struct err err = {0};

	adopt(fixture->store, &id, "mark");
	check_ok(tree_settle(fixture->store, &err), &err);
	assert_int_equal(tree_find(fixture->store, &id, &err), 1);
	check_ok(meta_begin(fixture->store, META_READ, &meta, &err), &err);
	assert_int_equal(meta_get(meta, "trees", str_of(digest_hex(&id, hex)), &record, &err), 1);
	assert_null(json_object_get(record, "boot"));
	assert_int_equal(meta_has(meta, "trees.unsynced", str_of(hex), &err), 0);
}

#define STORE_TEST(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(an_adopted_tree_is_found),
		STORE_TEST(who_was_faster_stays),
		STORE_TEST(a_record_without_its_directory_is_a_miss),
		STORE_TEST(a_placed_tree_is_a_miss_until_recorded),
		STORE_TEST(a_tree_placed_by_one_who_died_is_taken_over),
		STORE_TEST(an_unsynced_tree_of_another_boot_is_a_miss_and_swept),
		STORE_TEST(a_settled_tree_survives_another_boot),
	};

	return cmocka_run_group_tests_name("layers/tree", tests, NULL, NULL);
}
