/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/draft.h"
#include "tests/layers/records.h"

#define OWNER STR("bak_1")

static void fill(struct step_record *record, const char *key, const char *layer,
		 const char *content)
{
	*record = STEP_RECORD_INIT;
	record->key = named(key);
	record->parent = named("parent");
	record->blob = named(layer);
	record->diff_id = named(layer);
	record->content = named(content);
	record->blob_size = 100;
	record->tar_size = 200;
	record->created_ms = 1767225600123;
	record->duration_ms = 42;
}

static void put(const struct store_fixture *fixture, struct str owner, struct step_record *record)
{
	struct meta *meta = begin_write(fixture);
	struct err err = {0};

	check_ok(owner.len > 0 ? draft_put(meta, owner, record, &err)
			       : step_put(meta, record, &err),
		 &err);
	end_write(meta);
}

static int find(const struct store_fixture *fixture, struct str owner, const char *key,
		struct step_record *out)
{
	AUTO(meta) struct meta *meta = NULL;
	struct digest digest = named(key);
	struct err err = {0};
	int found;

	check_ok(meta_begin(fixture->store, META_READ, &meta, &err), &err);
	found = owner.len > 0 ? draft_find(meta, owner, &digest, true, out, &err)
			      : step_find(meta, &digest, true, out, &err);
	check_ok(found, &err);
	return found;
}

static void publish(const struct store_fixture *fixture, const char *key)
{
	const struct digest digest = named(key);
	struct meta *meta = begin_write(fixture);
	struct err err = {0};

	check_ok(draft_publish(meta, OWNER, STR(""), &digest, 1, &err), &err);
	end_write(meta);
}

static void a_draft_is_found_by_its_owner_alone(void **state)
{
	auto_step_record struct step_record in;
	auto_step_record struct step_record out = STEP_RECORD_INIT;
	struct err err = {0};

	fill(&in, "a", "layer", "content");
	in.components = json_pack("{s:s}", "instruction", "RUN true");
	check_ok(buf_add(&in.log.inline_log, STR("a log"), &err), &err);
	put(*state, OWNER, &in);
	assert_int_equal(find(*state, STR(""), "a", &out), 0);
	assert_int_equal(find(*state, STR("bak_2"), "a", &out), 0);
	assert_int_equal(find(*state, STR("bak_"), "a", &out), 0);
	assert_int_equal(find(*state, OWNER, "a", &out), 1);
	assert_true(digest_equal(&out.blob, &in.blob));
	assert_true(digest_equal(&out.content, &in.content));
	assert_int_equal(out.created_ms, in.created_ms);
	assert_int_equal(out.duration_ms, 42);
	assert_true(str_equal(buf_str(&out.log.inline_log), STR("a log")));
	assert_true(json_equal(out.components, in.components));
}

static void a_published_draft_replaces_the_record(void **state)
{
	auto_step_record struct step_record old;
	auto_step_record struct step_record new;
	auto_step_record struct step_record out = STEP_RECORD_INIT;

	fill(&old, "a", "old layer", "old content");
	put(*state, STR(""), &old);
	fill(&new, "a", "new layer", "new content");
	put(*state, OWNER, &new);
	assert_int_equal(find(*state, STR(""), "a", &out), 1);
	assert_true(digest_equal(&out.blob, &old.blob));

	publish(*state, "a");
	assert_int_equal(find(*state, STR(""), "a", &out), 1);
	assert_true(digest_equal(&out.blob, &new.blob));
	assert_int_equal(find(*state, OWNER, "a", &out), 0);
}

#define KEPT STR("agt_1.1")

/* A record, and a rebake of its step. */
static void replace(const struct store_fixture *fixture, const char *before, const char *after)
{
	auto_step_record struct step_record old;
	auto_step_record struct step_record new;
	const struct digest key = named("a");
	struct meta *meta;
	struct err err = {0};

	fill(&old, "a", before, before);
	put(fixture, STR(""), &old);
	fill(&new, "a", after, after);
	put(fixture, OWNER, &new);
	meta = begin_write(fixture);
	check_ok(draft_publish(meta, OWNER, KEPT, &key, 1, &err), &err);
	end_write(meta);
}

static void restore(const struct store_fixture *fixture)
{
	const struct digest key = named("a");
	struct meta *meta = begin_write(fixture);
	struct err err = {0};

	check_ok(draft_restore(meta, KEPT, &key, 1, &err), &err);
	end_write(meta);
}

static void check_record(const struct store_fixture *fixture, const char *layer)
{
	auto_step_record struct step_record out = STEP_RECORD_INIT;
	struct digest digest = named(layer);

	assert_int_equal(find(fixture, STR(""), "a", &out), 1);
	assert_true(digest_equal(&out.blob, &digest));
	assert_int_equal(out.duration_ms, 42);
}

static void what_was_replaced_is_put_back(void **state)
{
	auto_step_record struct step_record out = STEP_RECORD_INIT;

	replace(*state, "old", "new");
	check_record(*state, "new");
	assert_int_equal(find(*state, KEPT, "a", &out), 1);
	restore(*state);
	check_record(*state, "old");
	assert_int_equal(find(*state, KEPT, "a", &out), 0);
	restore(*state); /* nothing */
	check_record(*state, "old");
}

static void what_was_made_anew_since_is_not_replaced(void **state)
{
	auto_step_record struct step_record out = STEP_RECORD_INIT;
	auto_step_record struct step_record newest;

	replace(*state, "old", "new");
	fill(&newest, "a", "newest", "newest");
	put(*state, STR(""), &newest);
	restore(*state);
	check_record(*state, "newest");
	assert_int_equal(find(*state, KEPT, "a", &out), 0);
}

static void one_way_back_is_kept(void **state)
{
	replace(*state, "first", "second");
	replace(*state, "second", "third");
	restore(*state);
	check_record(*state, "second");
}

static void what_is_no_other_is_not_kept(void **state)
{
	auto_step_record struct step_record out = STEP_RECORD_INIT;

	replace(*state, "same", "same");
	assert_int_equal(find(*state, KEPT, "a", &out), 0);
}

static void an_equal_layer_is_the_published_one(void **state)
{
	auto_step_record struct step_record old;
	auto_step_record struct step_record new;
	auto_step_record struct step_record out = STEP_RECORD_INIT;

	fill(&old, "a", "old layer", "content");
	put(*state, STR(""), &old);
	fill(&new, "a", "same files, other times", "content");
	new.created_ms = old.created_ms + 1000;
	put(*state, OWNER, &new);
	assert_true(new.cut_off);
	assert_true(digest_equal(&new.blob, &old.blob));
	publish(*state, "a");
	assert_int_equal(find(*state, STR(""), "a", &out), 1);
	assert_true(digest_equal(&out.diff_id, &old.diff_id));
	assert_int_equal(out.created_ms, old.created_ms);
}

static void a_step_without_a_layer_keeps_the_time_of_the_first(void **state)
{
	auto_step_record struct step_record old = STEP_RECORD_INIT;
	auto_step_record struct step_record new = STEP_RECORD_INIT;

	old.key = named("a");
	old.empty = true;
	old.created_ms = 1000;
	put(*state, STR(""), &old);
	new.key = named("a");
	new.empty = true;
	new.created_ms = 2000;
	put(*state, OWNER, &new);
	assert_int_equal(new.created_ms, 1000);
}

static void a_published_layer_stands_in_for_later_equal_ones(void **state)
{
	auto_step_record struct step_record first;
	auto_step_record struct step_record later;

	fill(&first, "a", "layer", "content");
	put(*state, OWNER, &first);
	/* A draft does not: it may never be published. */
	fill(&later, "b", "another", "content");
	put(*state, STR("bak_2"), &later);
	assert_false(later.cut_off);
	publish(*state, "a");
	fill(&later, "c", "a third", "content");
	put(*state, STR(""), &later);
	assert_true(later.cut_off);
	assert_true(digest_equal(&later.blob, &first.blob));
}

static void what_the_image_does_not_need_is_dropped_when_it_is_published(void **state)
{
	auto_step_record struct step_record used;
	auto_step_record struct step_record unused;
	auto_step_record struct step_record out = STEP_RECORD_INIT;

	fill(&used, "a", "layer", "content");
	put(*state, OWNER, &used);
	fill(&unused, "b", "another", "other content");
	put(*state, OWNER, &unused);
	publish(*state, "a");
	assert_int_equal(find(*state, STR(""), "b", &out), 0);
	assert_int_equal(find(*state, OWNER, "b", &out), 0);
}

static void dropping_leaves_the_records_and_what_is_anothers(void **state)
{
	auto_step_record struct step_record record;
	auto_step_record struct step_record out = STEP_RECORD_INIT;
	struct meta *meta;
	struct err err = {0};

	fill(&record, "a", "layer", "content");
	put(*state, STR(""), &record);
	put(*state, OWNER, &record);
	put(*state, STR("bak_12"), &record);
	meta = begin_write(*state);
	check_ok(draft_drop(meta, OWNER, &err), &err);
	end_write(meta);
	assert_int_equal(find(*state, OWNER, "a", &out), 0);
	assert_int_equal(find(*state, STR("bak_12"), "a", &out), 1);
	assert_int_equal(find(*state, STR(""), "a", &out), 1);
}

struct seen {
	size_t drafts;
	size_t blobs;
	struct meta *meta;
};

static int see_blob(void *ctx, const struct digest *key, const struct digest *blob, struct err *err)
{
	struct seen *seen = ctx;
	const struct digest log = named("log");
	const struct digest listing = named("listing");

	(void)key, (void)err;
	assert_true(digest_equal(blob, &log) || digest_equal(blob, &listing));
	seen->blobs++;
	return 0;
}

static int see(void *ctx, struct str owner, const struct step_record *record, struct err *err)
{
	struct seen *seen = ctx;

	assert_true(str_equal(owner, OWNER));
	seen->drafts++;
	if (draft_each_log(record, see_blob, seen, err) < 0)
		return -1;
	return draft_remove(seen->meta, owner, &record->key, err) == 1 ? 0 : -1;
}

static void each_draft_tells_what_it_names_and_may_be_removed(void **state)
{
	struct seen seen = {0};
	char text[DIGEST_TEXT_MAX];
	struct digest listing = named("listing");
	struct err err = {0};

	for (int i = 0; i < 20; i++) {
		auto_step_record struct step_record record;
		char key[8];

		(void)snprintf(key, sizeof(key), "%d", i);
		fill(&record, key, "layer", key);
		record.log.blob = named("log");
		record.components = json_pack("{s:s}", "files", digest_format(&listing, text));
		put(*state, OWNER, &record);
	}
	seen.meta = begin_write(*state);
	check_ok(draft_each(seen.meta, see, &seen, &err), &err);
	assert_int_equal(seen.drafts, 20);
	assert_int_equal(seen.blobs, 40);
	seen.drafts = 0;
	check_ok(draft_each(seen.meta, see, &seen, &err), &err);
	assert_int_equal(seen.drafts, 0);
	end_write(seen.meta);
}

static void what_is_no_bakes_id_owns_no_draft(void **state)
{
	static const char *const wrong[] = {
		"", "a/b", "0123456789012345678901234567890123456789012345678901234567890123456"};
	auto_step_record struct step_record record;
	struct meta *meta = begin_write(*state);

	fill(&record, "a", "layer", "content");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct err err = {0};

		check_err(draft_put(meta, str_of(wrong[i]), &record, &err), &err, ERR_INVALID);
	}
	meta_abort(meta);
}

#define fixture_test(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(a_draft_is_found_by_its_owner_alone),
		fixture_test(a_published_draft_replaces_the_record),
		fixture_test(what_was_replaced_is_put_back),
		fixture_test(what_was_made_anew_since_is_not_replaced),
		fixture_test(one_way_back_is_kept),
		fixture_test(what_is_no_other_is_not_kept),
		fixture_test(an_equal_layer_is_the_published_one),
		fixture_test(a_step_without_a_layer_keeps_the_time_of_the_first),
		fixture_test(a_published_layer_stands_in_for_later_equal_ones),
		fixture_test(what_the_image_does_not_need_is_dropped_when_it_is_published),
		fixture_test(dropping_leaves_the_records_and_what_is_anothers),
		fixture_test(each_draft_tells_what_it_names_and_may_be_removed),
		fixture_test(what_is_no_bakes_id_owns_no_draft),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
