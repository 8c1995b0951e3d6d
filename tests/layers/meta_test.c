/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/meta.h"
#include "tests/layers/store_fixture.h"

static void put(struct store *store, const char *table, const char *key, json_t *value)
{
	AUTO(json) json_t *record = value;
	struct meta *meta;
	struct err err = {0};

	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(meta_put(meta, table, str_of(key), record, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
}

static json_t *get(struct store *store, const char *table, const char *key)
{
	AUTO(meta) struct meta *meta = NULL;
	json_t *record = NULL;
	struct err err = {0};

	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	check_ok(meta_get(meta, table, str_of(key), &record, &err), &err);
	return record;
}

static void a_table_never_written_is_empty(void **state)
{
	struct store_fixture *fixture = *state;

	assert_null(get(fixture->store, "steps", "none"));
}

static void a_record_comes_back_after_the_store_was_closed(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(json) json_t *record = NULL;

	put(fixture->store, "tags", "a", json_pack("{s:i, s:s}", "v", 1, "digest", "x"));
	record = get(store_fixture_reopen(fixture, false), "tags", "a");
	assert_string_equal(json_string_value(json_object_get(record, "digest")), "x");
}

static void a_records_bytes_are_lent_as_they_were_written(void **state)
{
	struct store_fixture *fixture = *state;
	struct str text = STR("{\"v\":1,\"b\":2,\"a\":1}");
	AUTO(json) json_t *parsed = NULL;
	struct meta *meta;
	struct str seen;
	struct err err = {0};

	check_ok(meta_begin(fixture->store, META_WRITE, &meta, &err), &err);
	check_ok(meta_put_text(meta, "t", STR("a"), text, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
	check_ok(meta_begin(fixture->store, META_READ, &meta, &err), &err);
	assert_int_equal(meta_view(meta, "t", STR("a"), &seen, &err), 1);
	assert_true(str_equal(seen, text));
	assert_int_equal(meta_view(meta, "t", STR("b"), &seen, &err), 0);
	meta_abort(meta);
	parsed = get(fixture->store, "t", "a");
	assert_int_equal(json_integer_value(json_object_get(parsed, "b")), 2);
}

static void tables_do_not_see_each_other(void **state)
{
	struct store_fixture *fixture = *state;

	put(fixture->store, "a", "key", json_pack("{s:i}", "v", 1));
	assert_null(get(fixture->store, "ab", "key"));
	assert_null(get(fixture->store, "a", "ke"));
}

static void an_aborted_transaction_never_was(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(json) json_t *record = json_pack("{s:i}", "v", 1);
	struct meta *meta;
	struct err err = {0};

	check_ok(meta_begin(fixture->store, META_WRITE, &meta, &err), &err);
	check_ok(meta_put(meta, "tags", STR("a"), record, &err), &err);
	assert_int_equal(meta_has(meta, "tags", STR("a"), &err), 1);
	meta_abort(meta);
	assert_null(get(fixture->store, "tags", "a"));
}

static void a_reader_keeps_its_snapshot(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(meta) struct meta *before = NULL;
	struct err err = {0};

	check_ok(meta_begin(fixture->store, META_READ, &before, &err), &err);
	put(fixture->store, "tags", "a", json_pack("{s:i}", "v", 1));
	assert_int_equal(meta_has(before, "tags", STR("a"), &err), 0);
}

static void unknown_members_survive_a_rewrite(void **state)
{
	struct store_fixture *fixture = *state;
	json_t *record;

	put(fixture->store, "tags", "a", json_pack("{s:i, s:i, s:[i]}", "v", 2, "n", 1, "new", 7));
	record = get(fixture->store, "tags", "a");
	assert_int_equal(json_object_set_new(record, "n", json_integer(2)), 0);
	put(fixture->store, "tags", "a", record);
	record = get(fixture->store, "tags", "a");
	assert_int_equal(json_integer_value(json_object_get(record, "n")), 2);
	assert_int_equal(json_array_size(json_object_get(record, "new")), 1);
	json_decref(record);
}

static void del_tells_whether_it_was_there(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};

	put(fixture->store, "tags", "a", json_pack("{s:i}", "v", 1));
	check_ok(meta_begin(fixture->store, META_WRITE, &meta, &err), &err);
	assert_int_equal(meta_del(meta, "tags", STR("a"), &err), 1);
	assert_int_equal(meta_del(meta, "tags", STR("a"), &err), 0);
}

struct seen {
	struct meta *meta;
	char keys[64];
	int stop_at;
	int count;
};

static int see(void *ctx, struct str key, const json_t *value, struct err *err)
{
	struct seen *seen = ctx;
	size_t used = strlen(seen->keys);

	assert_int_equal(json_integer_value(json_object_get(value, "v")), 1);
	(void)snprintf(seen->keys + used, sizeof(seen->keys) - used, STR_FMT " ", STR_ARG(key));
	if (seen->meta && meta_del(seen->meta, "t", key, err) < 0)
		return -1;
	return ++seen->count == seen->stop_at ? 42 : 0;
}

static void fill(struct store *store)
{
	static const char *const keys[] = {"b2", "a1", "c", "b1", "b"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		put(store, "t", keys[i], json_pack("{s:i}", "v", 1));
	put(store, "u", "b9", json_pack("{s:i}", "v", 1));
}

static void each_goes_in_order_below_a_prefix(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(meta) struct meta *meta = NULL;
	struct seen all = {0};
	struct seen some = {0};
	struct err err = {0};

	fill(fixture->store);
	check_ok(meta_begin(fixture->store, META_READ, &meta, &err), &err);
	check_ok(meta_each(meta, "t", STR(""), see, &all, &err), &err);
	assert_string_equal(all.keys, "a1 b b1 b2 c ");
	check_ok(meta_each(meta, "t", STR("b"), see, &some, &err), &err);
	assert_string_equal(some.keys, "b b1 b2 ");
}

static int see_key(void *ctx, struct str key, struct err *err)
{
	struct seen *seen = ctx;
	size_t used = strlen(seen->keys);

	(void)err;
	(void)snprintf(seen->keys + used, sizeof(seen->keys) - used, STR_FMT " ", STR_ARG(key));
	return 0;
}

static void a_walk_begins_behind_a_key_or_goes_backwards_from_one(void **state)
{
	static const struct {
		const char *prefix;
		const char *from;
		const char *after;
		const char *before;
	} cases[] = {
		{"", "", "a1 b b1 b2 c ", "c b2 b1 b a1 "},
		{"", "b1", "b2 c ", "b a1 "},
		{"", "b0", "b1 b2 c ", "b a1 "},
		{"", "c", "", "b2 b1 b a1 "},
		{"", "a", "a1 b b1 b2 c ", ""},
		{"", "z", "", "c b2 b1 b a1 "},
		{"b", "", "b b1 b2 ", "b2 b1 b "},
		{"b", "b1", "b2 ", "b "},
		{"b", "b", "b1 b2 ", ""},
		{"b\xff", "", "", ""},
	};
	struct store_fixture *fixture = *state;
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};

	fill(fixture->store);
	check_ok(meta_begin(fixture->store, META_READ, &meta, &err), &err);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct str prefix = str_of(cases[i].prefix);
		struct str from = str_of(cases[i].from);
		struct seen after = {0};
		struct seen before = {0};
		struct seen keys = {0};

		check_ok(meta_each_after(meta, "t", prefix, from, see, &after, &err), &err);
		assert_string_equal(after.keys, cases[i].after);
		check_ok(meta_each_key(meta, "t", prefix, from, see_key, &keys, &err), &err);
		assert_string_equal(keys.keys, cases[i].after);
		check_ok(meta_each_before(meta, "t", prefix, from, see, &before, &err), &err);
		assert_string_equal(before.keys, cases[i].before);
	}
}

static void check_end(struct meta *meta, const char *table, const char *prefix, enum meta_end end,
		      const char *expected)
{
	struct err err = {0};
	struct str key;

	assert_int_equal(meta_find_end(meta, table, str_of(prefix), end, &key, &err),
			 expected != NULL);
	if (expected)
		assert_true(str_equal(key, str_of(expected)));
}

static void the_ends_of_a_table_are_found(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};

	fill(fixture->store);
	check_ok(meta_begin(fixture->store, META_READ, &meta, &err), &err);
	check_end(meta, "t", "", META_FIRST, "a1");
	check_end(meta, "t", "", META_LAST, "c");
	check_end(meta, "t", "b", META_FIRST, "b");
	check_end(meta, "t", "b", META_LAST, "b2");
	check_end(meta, "u", "", META_LAST, "b9"); /* of the last table of all */
	check_end(meta, "t", "d", META_FIRST, NULL);
	check_end(meta, "t", "0", META_LAST, NULL);
	check_end(meta, "nothing", "", META_LAST, NULL);
	check_end(meta, "z", "", META_LAST, NULL);
}

static void new_ids_sort_behind_those_that_are_there(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(meta) struct meta *meta = NULL;
	char id[ID_TEXT_MAX];
	struct err err = {0};

	put(fixture->store, "x", "agt_01hf7yat000000000000000zzz", json_pack("{s:i}", "v", 1));
	put(fixture->store, "y", "none", json_pack("{s:i}", "v", 1));
	check_ok(meta_begin(fixture->store, META_READ, &meta, &err), &err);
	check_ok(meta_new_id(meta, "x", STR("agt_"), 0, id, &err), &err);
	assert_string_equal(id, "agt_01hf7yat000000000000001000");
	check_ok(meta_new_id(meta, "z", STR("bak_"), 1700000000000, id, &err), &err);
	assert_memory_equal(id, "bak_01hf7yat00", 14);
	assert_true(ulid_is_id(STR("bak_"), str_of(id)));
}

static void count_call(void *ctx)
{
	++*(int *)ctx;
}

static void whoever_waits_for_a_commit_is_called_once_and_after_it_alone(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(json) json_t *record = json_pack("{s:i}", "v", 1);
	struct meta *meta;
	int calls = 0;
	int others = 0;
	struct err err = {0};

	check_ok(meta_begin(fixture->store, META_WRITE, &meta, &err), &err);
	meta_on_commit(meta, count_call, &calls);
	meta_abort(meta);
	assert_int_equal(calls, 0);

	check_ok(meta_begin(fixture->store, META_WRITE, &meta, &err), &err);
	check_ok(meta_put(meta, "t", STR("a"), record, &err), &err);
	meta_on_commit(meta, count_call, &calls);
	meta_on_commit(meta, count_call, &calls);
	meta_on_commit(meta, count_call, &others);
	assert_int_equal(calls, 0);
	check_ok(meta_commit(meta, &err), &err);
	assert_int_equal(calls, 1);
	assert_int_equal(others, 1);
}

static void each_stops_where_it_is_told(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(meta) struct meta *meta = NULL;
	struct seen seen = {.stop_at = 2};
	struct err err = {0};

	fill(fixture->store);
	check_ok(meta_begin(fixture->store, META_READ, &meta, &err), &err);
	assert_int_equal(meta_each(meta, "t", STR(""), see, &seen, &err), 42);
	assert_string_equal(seen.keys, "a1 b ");
}

static void each_bears_that_records_are_deleted_on_the_way(void **state)
{
	struct store_fixture *fixture = *state;
	struct seen seen = {0};
	struct err err = {0};

	fill(fixture->store);
	check_ok(meta_begin(fixture->store, META_WRITE, &seen.meta, &err), &err);
	check_ok(meta_each(seen.meta, "t", STR(""), see, &seen, &err), &err);
	assert_string_equal(seen.keys, "a1 b b1 b2 c ");
	check_ok(meta_commit(seen.meta, &err), &err);
	assert_null(get(fixture->store, "t", "b"));
}

static void a_key_too_long_is_refused(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(meta) struct meta *meta = NULL;
	char key[META_KEY_MAX + 1];
	json_t *record;
	struct err err = {0};

	memset(key, 'k', sizeof(key));
	check_ok(meta_begin(fixture->store, META_READ, &meta, &err), &err);
	check_err(meta_get(meta, "t", (struct str){key, sizeof(key)}, &record, &err), &err,
		  ERR_LIMIT);
	assert_int_equal(meta_has(meta, "t", (struct str){key, META_KEY_MAX}, &err), 0);
}

#define STORE_TEST(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(a_table_never_written_is_empty),
		STORE_TEST(a_record_comes_back_after_the_store_was_closed),
		STORE_TEST(a_records_bytes_are_lent_as_they_were_written),
		STORE_TEST(tables_do_not_see_each_other),
		STORE_TEST(an_aborted_transaction_never_was),
		STORE_TEST(a_reader_keeps_its_snapshot),
		STORE_TEST(unknown_members_survive_a_rewrite),
		STORE_TEST(del_tells_whether_it_was_there),
		STORE_TEST(each_goes_in_order_below_a_prefix),
		STORE_TEST(a_walk_begins_behind_a_key_or_goes_backwards_from_one),
		STORE_TEST(the_ends_of_a_table_are_found),
		STORE_TEST(new_ids_sort_behind_those_that_are_there),
		STORE_TEST(whoever_waits_for_a_commit_is_called_once_and_after_it_alone),
		STORE_TEST(each_stops_where_it_is_told),
		STORE_TEST(each_bears_that_records_are_deleted_on_the_way),
		STORE_TEST(a_key_too_long_is_refused),
	};

	return cmocka_run_group_tests_name("layers/meta", tests, NULL, NULL);
}
