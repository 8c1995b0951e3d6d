/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/clock.h"
#include "layers/cache.h"
#include "tests/layers/store_fixture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static struct cache_spec spec_of(const char *id, enum cache_sharing sharing)
{
	return (struct cache_spec){
		.id = str_of(id),
		.platform = STR("linux/amd64"),
		.sharing = sharing,
		.mode = 0755,
	};
}

static void count_wait(void *ctx, const struct cache_spec *spec)
{
	int *waits = ctx;

	assert_true(spec->id.len > 0);
	(*waits)++;
}

/* Open at once, or the test fails. */
static struct cache open_now(struct store *store, struct cache_spec spec)
{
	struct cache cache = CACHE_INIT;
	struct err err = {0};
	int waits = 0;

	check_ok(cache_open(store, &spec, count_wait, &waits, NULL, &cache, &err), &err);
	assert_int_equal(waits, 0);
	return cache;
}

static void put(const struct cache *cache, const char *name)
{
	auto_close int fd = openat(cache->fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, name, strlen(name)), (ssize_t)strlen(name));
}

static bool has(const struct cache *cache, const char *name)
{
	return faccessat(cache->fd, name, F_OK, 0) == 0;
}

static void what_one_step_leaves_the_next_one_finds(void **state)
{
	const struct store_fixture *fixture = *state;
	struct cache_spec spec = spec_of("/root/.cache", CACHE_SHARED);
	struct cache first;
	struct cache next;
	struct stat st;

	spec.mode = 01770;
	spec.uid = 1000;
	spec.gid = 50;
	first = open_now(fixture->store, spec);
	assert_true(first.fresh);
	assert_int_equal(fstat(first.fd, &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 01770);
	assert_int_equal(st.st_uid, 1000);
	assert_int_equal(st.st_gid, 50);
	put(&first, "wheel");
	cache_close(&first);
	spec.mode = 0700; /* of a new one only */
	next = open_now(fixture->store, spec);
	assert_false(next.fresh);
	assert_true(has(&next, "wheel"));
	assert_int_equal(fstat(next.fd, &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 01770);
	cache_close(&next);
}

static void ids_and_platforms_have_caches_of_their_own(void **state)
{
	const struct store_fixture *fixture = *state;
	struct cache_spec arm = spec_of("/c", CACHE_SHARED);
	struct cache_spec joined = spec_of("/clinux", CACHE_SHARED);
	struct cache amd = open_now(fixture->store, spec_of("/c", CACHE_SHARED));
	struct cache other;

	put(&amd, "x");
	arm.platform = STR("linux/arm64");
	other = open_now(fixture->store, arm);
	assert_false(has(&other, "x"));
	cache_close(&other);
	joined.platform = STR("/amd64"); /* the same bytes, cut elsewhere */
	other = open_now(fixture->store, joined);
	assert_false(has(&other, "x"));
	cache_close(&other);
	cache_close(&amd);
}

static int fill(void *ctx, int dirfd, struct err *err)
{
	int *waits = ctx;
	auto_close int fd = -1;

	assert_int_equal(mkdirat(dirfd, CACHE_DATA, 0711), 0);
	fd = openat(dirfd, CACHE_DATA "/seed", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	return *waits > 0 ? err_set(err, ERR_UNAVAILABLE, "half way") : 0;
}

static void a_new_one_is_filled_whole_or_not_at_all(void **state)
{
	const struct store_fixture *fixture = *state;
	struct cache_spec spec = spec_of("f", CACHE_SHARED);
	struct cache cache = CACHE_INIT;
	struct err err = {0};
	int fails = 1;
	struct stat st;

	spec.fill = fill;
	check_err(cache_open(fixture->store, &spec, NULL, &fails, NULL, &cache, &err), &err,
		  ERR_UNAVAILABLE);
	cache = open_now(fixture->store, spec); /* again, and from the beginning */
	assert_true(cache.fresh);
	assert_true(has(&cache, "seed"));
	assert_int_equal(fstat(cache.fd, &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0711); /* as it was filled */
	assert_int_equal(unlinkat(cache.fd, "seed", 0), 0);
	cache_close(&cache);
	cache = open_now(fixture->store, spec);
	assert_false(cache.fresh);
	assert_false(has(&cache, "seed"));
	cache_close(&cache);
}

static void shared_users_have_one_and_private_users_one_each(void **state)
{
	const struct store_fixture *fixture = *state;
	struct cache a = open_now(fixture->store, spec_of("s", CACHE_SHARED));
	struct cache b = open_now(fixture->store, spec_of("s", CACHE_SHARED));
	struct cache own;

	put(&a, "x");
	assert_true(has(&b, "x"));
	own = open_now(fixture->store, spec_of("s", CACHE_PRIVATE));
	assert_true(own.fresh);
	assert_false(has(&own, "x"));
	cache_close(&own);
	cache_close(&a);
	cache_close(&b);
	own = open_now(fixture->store, spec_of("s", CACHE_PRIVATE));
	assert_true(has(&own, "x")); /* nobody is at the first one */
	cache_close(&own);
}

static void one_that_is_locked_is_waited_for_and_a_cancel_ends_it(void **state)
{
	const struct store_fixture *fixture = *state;
	struct cache_spec spec = spec_of("l", CACHE_LOCKED);
	struct cache held = open_now(fixture->store, spec);
	struct cache late = CACHE_INIT;
	struct cancel cancel;
	struct err err = {0};
	int waits = 0;

	check_ok(cancel_init(&cancel, &err), &err);
	cancel_raise(&cancel);
	for (int i = 0; i < 2; i++) {
		spec.sharing = i == 0 ? CACHE_LOCKED : CACHE_SHARED;
		check_err(
			cache_open(fixture->store, &spec, count_wait, &waits, &cancel, &late, &err),
			&err, ERR_CANCELLED);
		assert_int_equal(waits, i + 1);
	}
	cancel_done(&cancel);
	cache_close(&held);
	held = open_now(fixture->store, spec);
	cache_close(&held);
}

static void a_user_that_is_killed_leaves_no_lock(void **state)
{
	const struct store_fixture *fixture = *state;
	struct cache held = open_now(fixture->store, spec_of("k", CACHE_LOCKED));
	pid_t pid = fork();
	int waits = 0;
	struct cache_spec spec = spec_of("k", CACHE_LOCKED);
	struct err err = {0};

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(raise(SIGKILL)); /* it has the lock, too */
	cache_close(&held);
	check_ok(cache_open(fixture->store, &spec, count_wait, &waits, NULL, &held, &err), &err);
	cache_close(&held);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

struct seen {
	int count;
	int in_use;
	char name[CACHE_NAME_MAX];
	uint64_t bytes;
	int64_t used_ms;
};

static int see(void *ctx, const struct cache_info *info, struct err *err)
{
	struct seen *seen = ctx;

	(void)err;
	assert_true(str_equal(info->platform, STR("linux/amd64")));
	assert_true(str_equal(info->id, STR("/root/.cache\nodd")));
	(void)snprintf(seen->name, sizeof(seen->name), "%s", info->name);
	seen->bytes = info->bytes;
	seen->used_ms = info->used_ms;
	seen->in_use += info->in_use;
	seen->count++;
	return 0;
}

static void caches_are_listed_and_removed_unless_in_use(void **state)
{
	const struct store_fixture *fixture = *state;
	struct seen seen = {0};
	struct err err = {0};
	int64_t now = clock_now_ms();
	struct cache cache;

	check_ok(cache_each(fixture->store, true, see, &seen, &err), &err);
	assert_int_equal(seen.count, 0); /* there is not even a directory */
	assert_int_equal(cache_remove(fixture->store, "x", &err), 0);

	cache = open_now(fixture->store, spec_of("/root/.cache\nodd", CACHE_SHARED));
	put(&cache, "x");
	check_ok(cache_each(fixture->store, true, see, &seen, &err), &err);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.in_use, 1);
	assert_true(seen.bytes >= 4096);
	assert_true(seen.used_ms >= now - 1000 && seen.used_ms <= now + 60000);
	assert_int_equal(cache_remove(fixture->store, seen.name, &err), 0);
	assert_true(has(&cache, "x"));
	cache_close(&cache);

	check_ok(cache_each(fixture->store, false, see, &seen, &err), &err);
	assert_int_equal(seen.count, 2);
	assert_int_equal(seen.in_use, 1); /* not any more */
	assert_int_equal(cache_remove(fixture->store, seen.name, &err), 1);
	assert_int_equal(cache_remove(fixture->store, seen.name, &err), 0);
	check_ok(cache_each(fixture->store, true, see, &seen, &err), &err);
	assert_int_equal(seen.count, 2);
	cache = open_now(fixture->store, spec_of("/root/.cache\nodd", CACHE_SHARED));
	assert_true(cache.fresh);
	cache_close(&cache);
}

#define STORE_TEST(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(what_one_step_leaves_the_next_one_finds),
		STORE_TEST(ids_and_platforms_have_caches_of_their_own),
		STORE_TEST(a_new_one_is_filled_whole_or_not_at_all),
		STORE_TEST(shared_users_have_one_and_private_users_one_each),
		STORE_TEST(one_that_is_locked_is_waited_for_and_a_cancel_ends_it),
		STORE_TEST(a_user_that_is_killed_leaves_no_lock),
		STORE_TEST(caches_are_listed_and_removed_unless_in_use),
	};

	return cmocka_run_group_tests_name("layers/cache", tests, NULL, NULL);
}
