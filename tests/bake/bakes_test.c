/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/bakes.h"
#include "tests/layers/store_fixture.h"

#define AGENT "agt_01jd0000000000000000000001"
#define OTHER "agt_01jd0000000000000000000002"
#define NOW_MS ((int64_t)1700000000000)

static struct bakes_record record_of(const char *agent_id, int64_t version, bool rebake)
{
	struct bakes_record record = {.version = version,
				      .base_name = STR("debian:12"),
				      .rebake = rebake,
				      .created_ms = NOW_MS};

	(void)snprintf(record.agent_id, sizeof(record.agent_id), "%s", agent_id);
	(void)snprintf(record.slug, sizeof(record.slug), "repo-bot");
	return record;
}

static struct bakes_record add(struct store *store, const char *agent_id, int64_t version,
			       bool rebake)
{
	struct bakes_record record = record_of(agent_id, version, rebake);
	struct meta *meta;
	struct err err = {0};

	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(bakes_add(meta, &record, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
	return record;
}

static void put(struct store *store, const struct bakes_record *record)
{
	struct meta *meta;
	struct err err = {0};

	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(bakes_put(meta, record, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
}

static struct meta *reading(struct store *store)
{
	struct meta *meta;
	struct err err = {0};

	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	return meta;
}

static void a_record_comes_back_whole(void **state)
{
	struct store_fixture *fixture = *state;
	auto_bakes_record struct bakes_record record = add(fixture->store, AGENT, 3, true);
	auto_bakes_record struct bakes_record found = {0};
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};

	record.from_step = 2;
	record.state = BAKES_WAITING;
	record.attempt = 4;
	record.started_ms = NOW_MS + 1;
	record.finished_ms = NOW_MS + 2;
	record.retry_ms = NOW_MS + 3;
	record.cancelling = true;
	record.size = 77;
	record.steps = 5;
	record.cached_steps = 4;
	digest_of(STR("image"), &record.image);
	digest_of(STR("base"), &record.base);
	record.error = json_pack("{s:s}", "code", "UpstreamFailed");
	put(fixture->store, &record);
	meta = reading(fixture->store);
	assert_int_equal(bakes_find(meta, str_of(record.id), &found, &err), 1);
	assert_string_equal(found.id, record.id);
	assert_string_equal(found.agent_id, AGENT);
	assert_string_equal(found.slug, "repo-bot");
	assert_true(str_equal(found.base_name, STR("debian:12")));
	assert_true(found.rebake && found.cancelling);
	assert_int_equal(found.version, 3);
	assert_int_equal(found.from_step, 2);
	assert_int_equal(found.state, BAKES_WAITING);
	assert_int_equal(found.attempt, 4);
	assert_int_equal(found.created_ms, NOW_MS);
	assert_int_equal(found.started_ms, NOW_MS + 1);
	assert_int_equal(found.finished_ms, NOW_MS + 2);
	assert_int_equal(found.retry_ms, NOW_MS + 3);
	assert_int_equal(found.size, 77);
	assert_int_equal(found.steps, 5);
	assert_int_equal(found.cached_steps, 4);
	assert_true(digest_equal(&found.image, &record.image));
	assert_true(digest_equal(&found.base, &record.base));
	assert_true(json_equal(found.error, record.error));
}

static void what_a_newer_program_put_there_survives(void **state)
{
	struct store_fixture *fixture = *state;
	auto_bakes_record struct bakes_record record = add(fixture->store, AGENT, 1, false);
	auto_bakes_record struct bakes_record found = {0};
	AUTO(json) json_t *document = NULL;
	struct meta *meta;
	struct err err = {0};

	check_ok(meta_begin(fixture->store, META_WRITE, &meta, &err), &err);
	assert_int_equal(meta_get(meta, "bakes", str_of(record.id), &document, &err), 1);
	(void)json_object_set_new(document, "priority", json_integer(9));
	check_ok(meta_put(meta, "bakes", str_of(record.id), document, &err), &err);
	assert_int_equal(bakes_find(meta, str_of(record.id), &found, &err), 1);
	found.state = BAKES_RUNNING;
	check_ok(bakes_put(meta, &found, &err), &err);
	json_decref(document);
	assert_int_equal(meta_get(meta, "bakes", str_of(record.id), &document, &err), 1);
	assert_int_equal(json_integer_value(json_object_get(document, "priority")), 9);
	assert_string_equal(json_string_value(json_object_get(document, "state")), "running");
	meta_abort(meta);
}

static void clients_see_no_member_of_ours(void **state)
{
	struct bakes_record record = record_of(AGENT, 1, false);
	AUTO(json) json_t *shown = NULL;

	(void)state;
	record.cancelling = true;
	shown = bakes_format(&record);
	assert_null(json_object_get(shown, "v"));
	assert_null(json_object_get(shown, "cancelling"));
	assert_null(json_object_get(shown, "error"));
	assert_null(json_object_get(shown, "startedAt"));
	assert_string_equal(json_string_value(json_object_get(shown, "createdAt")),
			    "2023-11-14T22:13:20.000Z");
}

struct listed {
	char ids[8][ID_TEXT_MAX];
	size_t count;
	size_t limit;
};

static int list_one(void *ctx, const struct bakes_record *record, struct err *err)
{
	struct listed *listed = ctx;

	(void)err;
	memcpy(listed->ids[listed->count++], record->id, ID_TEXT_MAX);
	return listed->count == listed->limit;
}

static void bakes_are_listed_newest_first_and_go_on_where_a_page_ended(void **state)
{
	struct store_fixture *fixture = *state;
	struct bakes_record first = add(fixture->store, AGENT, 1, false);
	struct bakes_record others = add(fixture->store, OTHER, 1, false);
	struct bakes_record second = add(fixture->store, AGENT, 2, false);
	AUTO(meta) struct meta *meta = reading(fixture->store);
	struct listed all = {.limit = 8};
	struct listed page = {.limit = 1};
	struct listed rest = {.limit = 8};
	struct err err = {0};

	check_ok(bakes_each(meta, STR(""), STR(""), list_one, &all, &err), &err);
	assert_int_equal(all.count, 3);
	assert_string_equal(all.ids[0], second.id);
	assert_string_equal(all.ids[1], others.id);
	assert_int_equal(bakes_each(meta, STR(AGENT), STR(""), list_one, &page, &err), 1);
	assert_string_equal(page.ids[0], second.id);
	check_ok(bakes_each(meta, STR(AGENT), str_of(page.ids[0]), list_one, &rest, &err), &err);
	assert_int_equal(rest.count, 1);
	assert_string_equal(rest.ids[0], first.id);
}

static void what_is_to_be_done_is_found_in_its_order(void **state)
{
	struct store_fixture *fixture = *state;
	struct bakes_record first = add(fixture->store, AGENT, 1, false);
	struct bakes_record second = add(fixture->store, AGENT, 2, false);
	struct bakes_record third = add(fixture->store, OTHER, 1, false);
	AUTO(meta) struct meta *meta = NULL;
	struct listed open = {.limit = 8};
	struct listed later = {.limit = 8};
	struct err err = {0};

	first.state = BAKES_FAILED;
	put(fixture->store, &first);
	meta = reading(fixture->store);
	check_ok(bakes_each_open(meta, STR(""), list_one, &open, &err), &err);
	assert_int_equal(open.count, 2);
	assert_string_equal(open.ids[0], second.id);
	check_ok(bakes_each_open(meta, str_of(second.id), list_one, &later, &err), &err);
	assert_int_equal(later.count, 1);
	assert_string_equal(later.ids[0], third.id);
}

static void an_open_rebake_is_not_taken_for_the_versions_own_bake(void **state)
{
	struct store_fixture *fixture = *state;
	struct bakes_record own = add(fixture->store, AGENT, 1, false);
	struct bakes_record again = add(fixture->store, AGENT, 1, true);
	auto_bakes_record struct bakes_record found = {0};
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};

	own.state = BAKES_READY;
	put(fixture->store, &own);
	meta = reading(fixture->store);
	assert_int_equal(bakes_find_open(meta, STR(AGENT), 1, true, &found, &err), 1);
	assert_string_equal(found.id, again.id);
	bakes_record_done(&found);
	assert_int_equal(bakes_find_open(meta, STR(AGENT), 1, false, &found, &err), 0);
	assert_int_equal(bakes_find_open(meta, STR(OTHER), 1, true, &found, &err), 0);
}

static void of_an_agent_the_newest_bakes_are_kept_and_the_open_ones(void **state)
{
	struct store_fixture *fixture = *state;
	struct bakes_record open = add(fixture->store, AGENT, 1, false);
	struct bakes_record old = record_of(AGENT, 1, false);
	AUTO(meta) struct meta *meta = NULL;
	auto_bakes_record struct bakes_record gone = {0};
	struct bakes_ids ids;
	struct err err = {0};

	check_ok(meta_begin(fixture->store, META_WRITE, &meta, &err), &err);
	for (int i = 0; i < BAKES_KEPT + 2; i++) {
		struct bakes_record record = record_of(AGENT, 1, false);

		record.state = BAKES_READY;
		check_ok(bakes_add(meta, &record, &err), &err);
		if (i == 0)
			old = record;
	}
	check_ok(bakes_find_old(meta, STR(AGENT), &ids, &err), &err);
	assert_int_equal(ids.count, 2);
	assert_string_equal(ids.at[1], old.id);
	check_ok(bakes_remove(meta, STR(AGENT), str_of(old.id), &err), &err);
	assert_int_equal(bakes_find(meta, str_of(old.id), &gone, &err), 0);
	check_ok(bakes_find_old(meta, STR(AGENT), &ids, &err), &err);
	assert_int_equal(ids.count, 1);
	assert_int_equal(bakes_find(meta, str_of(open.id), &gone, &err), 1);
}

static void what_is_no_id_names_nothing(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(meta) struct meta *meta = reading(fixture->store);
	char text[600];
	struct str id = {text, sizeof(text)};
	struct bakes_record record;
	struct listed listed = {.limit = 8};
	struct err err = {0};

	memset(text, 'x', sizeof(text));
	assert_int_equal(bakes_find(meta, id, &record, &err), 0);
	assert_int_equal(bakes_each(meta, id, STR(""), list_one, &listed, &err), 0);
	assert_int_equal(bakes_each(meta, STR(AGENT), id, list_one, &listed, &err), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_record_comes_back_whole),
		TEST(what_a_newer_program_put_there_survives),
		cmocka_unit_test(clients_see_no_member_of_ours),
		TEST(bakes_are_listed_newest_first_and_go_on_where_a_page_ended),
		TEST(what_is_to_be_done_is_found_in_its_order),
		TEST(an_open_rebake_is_not_taken_for_the_versions_own_bake),
		TEST(of_an_agent_the_newest_bakes_are_kept_and_the_open_ones),
		TEST(what_is_no_id_names_nothing),
	};

	return cmocka_run_group_tests_name("bake/bakes", tests, NULL, NULL);
}
