/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/kept.h"

#include "bake/status.h"
#include "tests/layers/store_fixture.h"

#define AGENT "agt_01jd0000000000000000000000"

static int is_orphan(struct store *store, int64_t version)
{
	AUTO(meta) struct meta *meta = NULL;
	char text[KEPT_MAX];
	struct err err = {0};
	int orphan;

	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	orphan = kept_is_orphan(meta, kept_owner(AGENT, version, text), &err);
	check_ok(orphan, &err);
	return orphan;
}

static void put(struct store *store, const json_t *status)
{
	struct meta *meta;
	struct err err = {0};

	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(status_put(meta, status, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
}

static void a_version_owns_what_was_kept_while_there_is_a_way_back(void **state)
{
	struct store *store = ((struct store_fixture *)*state)->store;
	AUTO(json) json_t *status = status_new(STR(AGENT), STR("a"), 2);
	struct status_image image = {.size = 1, .finished_ms = 1};

	assert_int_equal(is_orphan(store, 2), 1);
	digest_of(STR("image"), &image.digest);
	status_set_ready(status, &image);
	put(store, status);
	assert_int_equal(is_orphan(store, 2), 1);
	status_set_previous(status, &image);
	put(store, status);
	assert_int_equal(is_orphan(store, 2), 0);
	assert_int_equal(is_orphan(store, 1), 1);
	status_set_previous(status, NULL);
	put(store, status);
	assert_int_equal(is_orphan(store, 2), 1);
}

static void a_bake_is_no_version(void **state)
{
	char text[KEPT_MAX];

	(void)state;
	assert_true(kept_is_owner(kept_owner(AGENT, INT64_MAX, text)));
	assert_string_equal(text, AGENT ".9223372036854775807");
	assert_false(kept_is_owner(STR("bak_01jd0000000000000000000000")));
	assert_false(kept_is_owner(STR(AGENT ".")));
	assert_false(kept_is_owner(STR(AGENT ".1x")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_version_owns_what_was_kept_while_there_is_a_way_back, store_fixture_open,
			store_fixture_close),
		cmocka_unit_test(a_bake_is_no_version),
	};

	return cmocka_run_group_tests_name("bake/kept", tests, NULL, NULL);
}
