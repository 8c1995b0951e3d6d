/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/thread.h"
#include "layers/tree.h"
#include "tests/layers/adopting.h"
#include "tests/layers/records.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const char *const tree_tables[] = {"trees", "trees.unsynced"};

/* One who has placed a tree, and records it only when another is about to lock it. */
struct late {
	struct store *store; /* NULL when it is done */
	const struct digest *diff_id;
	int hold;
};

static struct late late;

/* One who places the same tree in a thread of its own. */
struct rival {
	struct store *store;
	const struct digest *diff_id;
	atomic_int tid;
};

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
	adopt_tree(store, diff_id, staging.fd, "tree");
	assert_int_equal(faccessat(staging.fd, "tree", F_OK, 0), -1);
}

/* The tree's record, with its boot id replaced: as after a restart of the machine. */
static void pretend_another_boot(struct store *store, const struct digest *diff_id)
{
	char hex[DIGEST_HEX_MAX];
	struct str key = str_of(digest_hex(diff_id, hex));
	struct meta *meta;
	struct err err = {0};

	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	for (size_t i = 0; i < 2; i++) {
		AUTO(json) json_t *record = NULL;

		assert_int_equal(meta_get(meta, tree_tables[i], key, &record, &err), 1);
		assert_int_equal(json_object_set_new(record, "boot", json_string("another")), 0);
		check_ok(meta_put(meta, tree_tables[i], key, record, &err), &err);
	}
	check_ok(meta_commit(meta, &err), &err);
}

static void *rival_adopts(void *ctx)
{
	struct rival *rival = ctx;

	atomic_store(&rival->tid, gettid());
	adopt(rival->store, rival->diff_id, "rival's");
	return NULL;
}

/* It has nothing to wait for but the write transaction that we have. */
static void wait_until_it_waits(struct rival *rival)
{
	char state = 0;

	while (state != 'S') {
		char path[64];
		FILE *stat;

		(void)snprintf(path, sizeof(path), "/proc/self/task/%d/stat",
			       atomic_load(&rival->tid));
		stat = fopen(path, "re");
		if (!stat)
			continue; /* it has no number yet */
		assert_int_equal(fscanf(stat, "%*d (%*[^)]) %c", &state), 1);
		(void)fclose(stat);
	}
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

/* A tree that is placed and not yet recorded; returns what holds it. */
static int place(struct store *store, const struct digest *diff_id, const char *mark)
{
	auto_staging struct staging staging = STAGING_INIT;
	struct err err = {0};
	int hold;

	check_ok(staging_open(store, &staging, &err), &err);
	make(&staging, "tree", mark);
	hold = tree_place(store, diff_id, staging.fd, "tree", &err);
	check_ok(hold, &err);
	return hold;
}

static void record(struct store *store, const struct digest *diff_id)
{
	struct meta *meta;
	struct err err = {0};

	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(tree_record(meta, store, diff_id, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
}

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);

/* The late one is done just before somebody else locks its tree. */
int __wrap_flock(int fd, int operation)
{
	struct store *store = late.store;
	struct stat theirs;
	struct stat wanted;

	if (store && fstat(late.hold, &theirs) == 0 && fstat(fd, &wanted) == 0 &&
	    theirs.st_ino == wanted.st_ino) {
		late.store = NULL;
		record(store, late.diff_id);
		assert_int_equal(close(late.hold), 0);
	}
	return __real_flock(fd, operation);
}

static void sweep(struct store *store)
{
	struct err err = {0};

	check_ok(store_sweep(store, NULL, &err), &err);
}

/* A process that has inherited the hold and does nothing else. */
static pid_t start_holder(int hold)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(void)pause();
	}
	assert_int_equal(close(hold), 0);
	return pid;
}

static void a_placed_tree_is_a_miss_until_recorded(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest id = named("a");
	auto_close int hold = place(fixture->store, &id, "mark");
	struct err err = {0};

	assert_true(hold >= 0);
	assert_int_equal(tree_find(fixture->store, &id, &err), 0);
	sweep(fixture->store);
	assert_true(tree_has(fixture->store, &id, "mark"));
	record(fixture->store, &id);
	assert_int_equal(tree_find(fixture->store, &id, &err), 1);
	sweep(fixture->store);
	assert_int_equal(tree_find(fixture->store, &id, &err), 1);
}

static void a_placed_tree_is_kept_until_its_holder_dies(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest id = named("a");
	pid_t holder = start_holder(place(fixture->store, &id, "mark"));

	sweep(fixture->store);
	assert_true(tree_has(fixture->store, &id, "mark"));
	assert_int_equal(kill(holder, SIGKILL), 0);
	assert_int_equal(waitpid(holder, NULL, 0), holder);
	sweep(fixture->store);
	assert_false(tree_has(fixture->store, &id, ""));
}

static void a_tree_recorded_while_the_sweep_looked_is_kept(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest id = named("a");
	struct err err = {0};

	late = (struct late){fixture->store, &id, place(fixture->store, &id, "mark")};
	sweep(fixture->store); /* it saw no record, and then could hold the tree */
	assert_null(late.store);
	assert_int_equal(tree_find(fixture->store, &id, &err), 1);
	assert_true(tree_has(fixture->store, &id, "mark"));
}

static void a_tree_recorded_while_another_was_placed_stays(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest id = named("a");
	int hold = place(fixture->store, &id, "first");

	late = (struct late){fixture->store, &id, hold};
	adopt(fixture->store, &id, "second"); /* it waited for the first to record */
	assert_null(late.store);
	assert_true(tree_has(fixture->store, &id, "first"));
}

static void a_tree_placed_by_one_who_died_is_replaced(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest id = named("a");
	struct err err = {0};

	assert_int_equal(close(place(fixture->store, &id, "maybe damaged")), 0);
	adopt(fixture->store, &id, "whole");
	assert_int_equal(tree_find(fixture->store, &id, &err), 1);
	assert_true(tree_has(fixture->store, &id, "whole"));
	assert_false(tree_has(fixture->store, &id, "maybe damaged"));
}

/* Whoever sees a stale record has to look again before it deletes one. */
static void a_record_made_good_meanwhile_is_not_forgotten(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest id = named("a");
	struct rival rival = {.store = fixture->store, .diff_id = &id};
	char hex[DIGEST_HEX_MAX];
	struct str key = str_of(digest_hex(&id, hex));
	struct err err = {0};
	struct meta *meta;
	pthread_t thread;

	adopt(fixture->store, &id, "stale");
	pretend_another_boot(fixture->store, &id);
	check_ok(meta_begin(fixture->store, META_WRITE, &meta, &err), &err);
	check_ok(thread_start(&thread, rival_adopts, &rival, &err), &err);
	wait_until_it_waits(&rival);
	for (size_t i = 0; i < 2; i++)
		check_ok(meta_del(meta, tree_tables[i], key, &err), &err);
	check_ok(tree_record(meta, fixture->store, &id, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(tree_find(fixture->store, &id, &err), 1);
	assert_true(tree_has(fixture->store, &id, "stale")); /* which is good by that record */
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

/* As deep as a layer may be (overlay_priv.h): what lies at the bottom takes space, too. */
static void a_deep_tree_is_counted_to_its_bottom(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest id = named("deep");
	char hex[DIGEST_HEX_MAX];
	static char bytes[4 * 1024 * 1024] = {1}; /* more than its directories */
	struct err err = {0};
	uint64_t blocks;
	int dirfd;

	adopt(fixture->store, &id, "mark");
	dirfd = openat(store_dirfd(fixture->store, STORE_TREES), digest_hex(&id, hex),
		       O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int depth = 0; depth < 200; depth++) {
		int below;

		assert_int_equal(mkdirat(dirfd, "d", 0755), 0);
		below = openat(dirfd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		(void)close(dirfd);
		dirfd = below;
	}
	{
		auto_close int fd = openat(dirfd, "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

		assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
		assert_int_equal(fsync(fd), 0);
	}
	(void)close(dirfd);
	check_ok(tree_blocks(fixture->store, &id, NULL, &blocks, &err), &err);
	assert_true(blocks >= sizeof(bytes));
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
		STORE_TEST(a_placed_tree_is_kept_until_its_holder_dies),
		STORE_TEST(a_tree_recorded_while_the_sweep_looked_is_kept),
		STORE_TEST(a_tree_recorded_while_another_was_placed_stays),
		STORE_TEST(a_tree_placed_by_one_who_died_is_replaced),
		STORE_TEST(a_record_made_good_meanwhile_is_not_forgotten),
		STORE_TEST(an_unsynced_tree_of_another_boot_is_a_miss_and_swept),
		STORE_TEST(a_settled_tree_survives_another_boot),
		STORE_TEST(a_deep_tree_is_counted_to_its_bottom),
	};

	return cmocka_run_group_tests_name("layers/tree", tests, NULL, NULL);
}
