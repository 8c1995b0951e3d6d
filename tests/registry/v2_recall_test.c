/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/tag.h"
#include "registry/v2_recall.h"
#include "tests/registry/v2_desk.h"

static void a_manifest_is_known_by_its_own_name_and_generation_alone(void **state)
{
	struct v2_recall *recall = v2_recall_new();
	const struct v2_path path = {.repository = STR("a/b"), .reference = STR("1")};
	const struct v2_path others[] = {
		{.repository = STR("a/b"), .reference = STR("2")},
		{.repository = STR("a"), .reference = STR("1")},
		{.repository = STR("a/b"), .reference = STR("")},
	};
	const struct repository_item item = {.size = 7, .media_type = "application/x-test"};
	struct repository_item out = {.size = 42};

	(void)state;
	assert_false(v2_recall_find(recall, &path, 1, &out));
	v2_recall_put(recall, &path, 1, &item);
	assert_false(v2_recall_find(recall, &path, 2, &out));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(v2_recall_find(recall, &others[i], 1, &out));
	assert_int_equal(out.size, 42); /* untouched by misses */
	assert_true(v2_recall_find(recall, &path, 1, &out));
	assert_int_equal(out.size, 7);
	assert_string_equal(out.media_type, "application/x-test");
	v2_recall_free(recall);
}

static void more_than_there_are_places_for_push_one_another_out(void **state)
{
	struct v2_recall *recall = v2_recall_new();
	struct repository_item item = {0};
	size_t hits = 0;

	(void)state;
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < 2 * V2_RECALL_MAX; i++) {
			char tag[32];
			struct v2_path path = {.repository = STR("a")};
			struct repository_item out;

			(void)snprintf(tag, sizeof(tag), "%zu", i);
			path.reference = str_of(tag);
			item.size = i;
			if (round == 0)
				v2_recall_put(recall, &path, 1, &item);
			else if (v2_recall_find(recall, &path, 1, &out)) {
				assert_int_equal(out.size, i);
				hits++;
			}
		}
	}
	assert_in_range(hits, 1, V2_RECALL_MAX);
	v2_recall_free(recall);
}

/* Point a:1 at it. */
static void put_tag(struct v2_desk *desk, const char *text)
{
	struct stock stock = stock_put(desk->v2.store, text, DIGEST_SHA256);
	struct repository_item item = stock_item(&stock, REPOSITORY_MANIFEST, REPOSITORY_PUSHED);
	struct tag tag = {.target = stock.digest, .manifest = stock.digest, .at_ms = 1};
	struct meta *meta;
	struct err err = {0};

	platform_host(&tag.platform);
	check_ok(meta_begin(desk->v2.store, META_WRITE, &meta, &err), &err);
	check_ok(repository_put(meta, STR("a"), &item, &err), &err);
	check_ok(tag_put_held(meta, STR("localhost/a:1"), &tag, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
}

static void a_tag_that_moved_or_went_is_seen_at_once(void **state)
{
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);
	struct meta *meta;
	struct err err = {0};

	for (int i = 0; i < 4; i++) {
		put_tag(&desk, i % 2 ? "{\"one\":1}" : "{\"two\":2}");
		for (int again = 0; again < 2; again++) {
			(void)v2_get(&desk, "/v2/a/manifests/1");
			v2_check_status(&desk, 200);
			assert_string_equal(v2_body(&desk), i % 2 ? "{\"one\":1}" : "{\"two\":2}");
		}
	}
	check_ok(meta_begin(desk.v2.store, META_WRITE, &meta, &err), &err);
	assert_int_equal(tag_del(meta, STR("localhost/a:1"), &err), 1);
	check_ok(meta_commit(meta, &err), &err);
	(void)v2_get(&desk, "/v2/a/manifests/1");
	v2_check_refused(&desk, 404, "MANIFEST_UNKNOWN");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_manifest_is_known_by_its_own_name_and_generation_alone),
		cmocka_unit_test(more_than_there_are_places_for_push_one_another_out),
		cmocka_unit_test_setup_teardown(a_tag_that_moved_or_went_is_seen_at_once,
						store_fixture_open, store_fixture_close),
	};

	return cmocka_run_group_tests_name("registry/v2_recall", tests, NULL, NULL);
}
