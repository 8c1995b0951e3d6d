/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/step.h"
#include "tests/layers/records.h"

static void fill(struct step_record *record, const char *key)
{
	*record = STEP_RECORD_INIT;
	record->key = named(key);
	record->parent = named("parent");
	record->blob = named(key);
	record->codec = LAYER_GZIP;
	record->diff_id = named("diff id");
	record->content = named("content");
	record->blob_size = 100;
	record->tar_size = 200;
	record->created_ms = 1767225600123;
	record->duration_ms = 42;
	record->log.size = 7;
}

static void put(struct store *store, struct step_record *record)
{
	struct meta *meta;
	struct err err = {0};

	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(step_put(meta, record, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
}

static int find(struct store *store, const char *key, bool details, struct step_record *out)
{
	AUTO(meta) struct meta *meta = NULL;
	struct digest digest = named(key);
	struct err err = {0};
	int found;

	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	found = step_find(meta, &digest, details, out, &err);
	check_ok(found, &err);
	return found;
}

static int find_content(struct store *store, const char *parent, const char *content,
			struct step_record *out)
{
	AUTO(meta) struct meta *meta = NULL;
	struct digest below = named(parent);
	struct digest wanted = named(content);
	struct err err = {0};
	int found;

	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	found = step_find_content(meta, &below, &wanted, out, &err);
	check_ok(found, &err);
	return found;
}

static void a_step_comes_back_as_it_was_put(void **state)
{
	struct store_fixture *fixture = *state;
	auto_step_record struct step_record in;
	auto_step_record struct step_record out = STEP_RECORD_INIT;
	struct err err = {0};

	fill(&in, "a");
	check_ok(buf_add(&in.log.inline_log, STR("\0\xff log"), &err), &err);
	in.components = json_pack("{s:s}", "instruction", "RUN true");
	put(fixture->store, &in);
	assert_int_equal(find(fixture->store, "a", true, &out), 1);
	assert_true(digest_equal(&out.key, &in.key));
	assert_true(digest_equal(&out.parent, &in.parent));
	assert_true(digest_equal(&out.blob, &in.blob));
	assert_int_equal(out.codec, LAYER_GZIP);
	assert_true(digest_equal(&out.diff_id, &in.diff_id));
	assert_true(digest_equal(&out.content, &in.content));
	assert_int_equal(out.blob_size, 100);
	assert_int_equal(out.tar_size, 200);
	assert_int_equal(out.created_ms, 1767225600123);
	assert_int_equal(out.duration_ms, 42);
	assert_int_equal(out.log.size, 7);
	assert_false(out.empty);
	assert_false(out.cut_off);
	assert_true(str_equal(buf_str(&out.log.inline_log), STR("\0\xff log")));
	assert_true(json_equal(out.components, in.components));
}

static void details_are_read_only_when_asked_for(void **state)
{
	struct store_fixture *fixture = *state;
	auto_step_record struct step_record in;
	auto_step_record struct step_record out = STEP_RECORD_INIT;

	fill(&in, "a");
	in.components = json_object();
	put(fixture->store, &in);
	assert_int_equal(find(fixture->store, "a", false, &out), 1);
	assert_null(out.components);
	assert_int_equal(find(fixture->store, "b", false, &out), 0);
}

static void a_step_on_scratch_without_a_layer_is_kept(void **state)
{
	struct store_fixture *fixture = *state;
	auto_step_record struct step_record in = STEP_RECORD_INIT;
	auto_step_record struct step_record out = STEP_RECORD_INIT;
	struct digest zero = {0};

	in.key = named("env");
	in.empty = true;
	put(fixture->store, &in);
	assert_int_equal(find(fixture->store, "env", true, &out), 1);
	assert_true(out.empty);
	assert_true(digest_equal(&out.parent, &zero));
}

static void equal_content_finds_the_earliest_layer(void **state)
{
	struct store_fixture *fixture = *state;
	auto_step_record struct step_record first;
	auto_step_record struct step_record second;
	auto_step_record struct step_record out = STEP_RECORD_INIT;

	assert_int_equal(find_content(fixture->store, "parent", "content", &out), 0);
	fill(&first, "first");
	put(fixture->store, &first);
	fill(&second, "second");
	put(fixture->store, &second);
	assert_int_equal(find_content(fixture->store, "parent", "content", &out), 1);
	assert_true(digest_equal(&out.blob, &first.blob));
	assert_int_equal(find_content(fixture->store, "other", "content", &out), 0);
	assert_int_equal(find_content(fixture->store, "parent", "other", &out), 0);
}

static void content_that_a_step_no_longer_has_is_a_miss_until_put_again(void **state)
{
	struct store_fixture *fixture = *state;
	auto_step_record struct step_record first;
	auto_step_record struct step_record second;
	auto_step_record struct step_record out = STEP_RECORD_INIT;

	fill(&first, "first");
	put(fixture->store, &first);
	first.content = named("something else");
	put(fixture->store, &first);
	assert_int_equal(find_content(fixture->store, "parent", "content", &out), 0);
	fill(&second, "second");
	put(fixture->store, &second);
	assert_int_equal(find_content(fixture->store, "parent", "content", &out), 1);
	assert_true(digest_equal(&out.blob, &second.blob));
}

/* As collection does: the record goes, what refers to it stays. */
static void forget(struct store *store, const char *key)
{
	static const char *const tables[] = {"steps", "steps.details"};
	struct digest digest = named(key);
	char hex[DIGEST_HEX_MAX];
	struct meta *meta;
	struct err err = {0};

	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(meta_del(meta, tables[i], str_of(digest_hex(&digest, hex)), &err),
				 1);
	check_ok(meta_commit(meta, &err), &err);
}

/* A step whose layer differs in times alone from what fill() makes. */
static void fill_later(struct step_record *record, const char *key)
{
	fill(record, key);
	record->diff_id = named("later");
	record->created_ms++;
}

static void a_later_equal_layer_is_replaced_by_the_earlier_one(void **state)
{
	struct store_fixture *fixture = *state;
	auto_step_record struct step_record first;
	auto_step_record struct step_record later;
	auto_step_record struct step_record out = STEP_RECORD_INIT;

	fill(&first, "first");
	put(fixture->store, &first);
	fill_later(&later, "later");
	later.codec = LAYER_ZSTD;
	put(fixture->store, &later);
	assert_true(later.cut_off);
	assert_int_equal(later.codec, first.codec); /* the blob's, not the one asked for */
	assert_int_equal(find(fixture->store, "later", false, &out), 1);
	assert_true(out.cut_off);
	assert_true(digest_equal(&out.blob, &first.blob));
	assert_true(digest_equal(&out.diff_id, &first.diff_id));
	assert_int_equal(out.created_ms, first.created_ms);
}

static void the_same_layer_made_again_keeps_its_time_and_is_not_cut_off(void **state)
{
	struct store_fixture *fixture = *state;
	auto_step_record struct step_record again;
	auto_step_record struct step_record out = STEP_RECORD_INIT;

	for (int i = 0; i < 2; i++) {
		fill(&again, "a");
		again.created_ms += i;
		put(fixture->store, &again);
	}
	assert_false(again.cut_off);
	assert_int_equal(find(fixture->store, "a", false, &out), 1);
	assert_int_equal(out.created_ms, 1767225600123);
}

static void the_same_layer_of_another_step_is_cut_off(void **state)
{
	struct store_fixture *fixture = *state;
	auto_step_record struct step_record first;
	auto_step_record struct step_record other;

	fill(&first, "first");
	put(fixture->store, &first);
	fill(&other, "other");
	other.diff_id = first.diff_id;
	other.created_ms++;
	put(fixture->store, &other);
	assert_true(other.cut_off);
	assert_int_equal(other.created_ms, first.created_ms);
}

static void an_earlier_layer_that_is_gone_by_then_replaces_nothing(void **state)
{
	struct store_fixture *fixture = *state;
	auto_step_record struct step_record first;
	auto_step_record struct step_record later;
	auto_step_record struct step_record out = STEP_RECORD_INIT;

	fill(&first, "first");
	put(fixture->store, &first);
	assert_int_equal(find_content(fixture->store, "parent", "content", &out), 1);
	forget(fixture->store, "first");
	fill_later(&later, "later");
	put(fixture->store, &later);
	assert_false(later.cut_off);
	assert_true(digest_equal(&later.blob, &later.key));
	assert_int_equal(find_content(fixture->store, "parent", "content", &out), 1);
	assert_true(digest_equal(&out.diff_id, &later.diff_id));
}

static void a_layer_that_was_cut_off_stands_in_for_nothing(void **state)
{
	struct store_fixture *fixture = *state;
	auto_step_record struct step_record first;
	auto_step_record struct step_record later;
	auto_step_record struct step_record out = STEP_RECORD_INIT;

	fill(&first, "first");
	put(fixture->store, &first);
	fill_later(&later, "later");
	put(fixture->store, &later);
	forget(fixture->store, "first");
	assert_int_equal(find_content(fixture->store, "parent", "content", &out), 0);
}

static void no_layer_again_keeps_the_time_of_the_first(void **state)
{
	struct store_fixture *fixture = *state;
	auto_step_record struct step_record first = STEP_RECORD_INIT;
	auto_step_record struct step_record again = STEP_RECORD_INIT;

	first.key = again.key = named("a");
	first.empty = again.empty = true;
	first.created_ms = 1;
	again.created_ms = 2;
	put(fixture->store, &first);
	put(fixture->store, &again);
	assert_int_equal(again.created_ms, 1);
}

static void a_damaged_record_is_corrupt(void **state)
{
	struct store_fixture *fixture = *state;
	auto_step_record struct step_record out = STEP_RECORD_INIT;
	AUTO(json)
	json_t *record =
		json_pack("{s:i, s:i, s:i, s:s}", "v", 1, "atMs", 1, "ms", 1, "blob", "no digest");
	struct digest key = named("bad");
	char hex[DIGEST_HEX_MAX];
	struct meta *meta;
	struct err err = {0};

	check_ok(meta_begin(fixture->store, META_WRITE, &meta, &err), &err);
	check_ok(meta_put(meta, "steps", str_of(digest_hex(&key, hex)), record, &err), &err);
	check_err(step_find(meta, &key, false, &out, &err), &err, ERR_CORRUPT);
	meta_abort(meta);
}

#define STORE_TEST(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(a_step_comes_back_as_it_was_put),
		STORE_TEST(details_are_read_only_when_asked_for),
		STORE_TEST(a_step_on_scratch_without_a_layer_is_kept),
		STORE_TEST(equal_content_finds_the_earliest_layer),
		STORE_TEST(content_that_a_step_no_longer_has_is_a_miss_until_put_again),
		STORE_TEST(a_later_equal_layer_is_replaced_by_the_earlier_one),
		STORE_TEST(the_same_layer_made_again_keeps_its_time_and_is_not_cut_off),
		STORE_TEST(the_same_layer_of_another_step_is_cut_off),
		STORE_TEST(an_earlier_layer_that_is_gone_by_then_replaces_nothing),
		STORE_TEST(no_layer_again_keeps_the_time_of_the_first),
		STORE_TEST(a_layer_that_was_cut_off_stands_in_for_nothing),
		STORE_TEST(a_damaged_record_is_corrupt),
	};

	return cmocka_run_group_tests_name("layers/step", tests, NULL, NULL);
}
