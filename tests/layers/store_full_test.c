/* SPDX-License-Identifier: Apache-2.0 */
/* A file system that fills up in the middle of a blob, in a mount namespace of the test's own. */
#include "layers/blob.h"
#include "layers/meta.h"
#include "tests/layers/blobs.h"
#include "tests/layers/small_fixture.h"
#include "tests/layers/store_check.h"

#include <sched.h>
#include <sys/stat.h>

#define MIB ((size_t)1024 * 1024)

/* Different bytes every time, so that nothing deduplicates. */
static int put_noise(struct store *store, size_t len, struct digest *out, struct err *err)
{
	static uint64_t seed = 1;
	auto_free uint64_t *words = malloc(len);

	assert_non_null(words);
	for (size_t i = 0; i < len / sizeof(*words); i++) {
		seed = seed * 6364136223846793005 + 1442695040888963407;
		words[i] = seed;
	}
	return blob_put(store, (struct str){(const char *)words, len}, out, err);
}

static void a_full_disk_is_said_and_the_store_stays_usable(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest kept;
	struct digest digest;
	struct err err = {0};
	int rc;

	check_ok(put_noise(fixture->store, 3 * MIB, &kept, &err), &err);
	while ((rc = put_noise(fixture->store, 5 * MIB, &digest, &err)) == 0)
		kept = digest;
	assert_int_equal(rc, -1);
	assert_int_equal(err.kind, ERR_FULL);
	assert_non_null(strstr(err.text, fixture->path));
	check_ok(blob_check(fixture->store, &kept, &err), &err);

	/* The same process goes on once there is room again. */
	assert_int_equal(mount(NULL, fixture->parent, NULL, MS_REMOUNT, "size=256m"), 0);
	check_ok(put_noise(fixture->store, 20 * MIB, &digest, &err), &err);
	check_ok(blob_check(fixture->store, &digest, &err), &err);
	(void)store_check(store_fixture_reopen(fixture, false));
}

static int put_record(struct store *store, int number, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	AUTO(json) json_t *record = NULL;
	char key[16];
	static char long_text[64 * 1024];

	memset(long_text, 'x', sizeof(long_text));
	(void)snprintf(key, sizeof(key), "%d", number);
	record = json_pack("{s:i, s:s%}", "v", 1, "text", long_text, sizeof(long_text));
	if (meta_begin(store, META_WRITE, &meta, err) < 0 ||
	    meta_put(meta, "t", str_of(key), record, err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}

static void a_full_disk_fails_a_record_and_keeps_the_others(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(meta) struct meta *meta = NULL;
	char last[16];
	int count = 0;
	struct err err = {0};

	while (put_record(fixture->store, count, &err) == 0)
		count++;
	assert_int_equal(err.kind, ERR_FULL);
	assert_true(count > 0);
	(void)snprintf(last, sizeof(last), "%d", count - 1);
	check_ok(meta_begin(store_fixture_reopen(fixture, false), META_READ, &meta, &err), &err);
	assert_int_equal(meta_has(meta, "t", str_of(last), &err), 1);
	(void)snprintf(last, sizeof(last), "%d", count);
	assert_int_equal(meta_has(meta, "t", str_of(last), &err), 0);
}

static int open_small(void **state)
{
	return small_fixture_open(state, "size=24m,mode=0700");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_full_disk_is_said_and_the_store_stays_usable,
						open_small, small_fixture_close),
		cmocka_unit_test_setup_teardown(a_full_disk_fails_a_record_and_keeps_the_others,
						open_small, small_fixture_close),
	};

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 125; /* needs root */
	return cmocka_run_group_tests_name("layers/store_full", tests, NULL, NULL);
}
