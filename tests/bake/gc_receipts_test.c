/* SPDX-License-Identifier: Apache-2.0 */
/* What was pushed and has a receipt alone, while it is collected. */
#include "layers/collect.h"
#include "layers/use.h"
#include "registry/document.h"
#include "registry/intake.h"
#include "tests/bake/gc_scene.h"
#include "tests/registry/v2_desk.h"

/* As an upload ends. */
static struct stock take_in(struct store *store, const char *repository, const char *text,
			    enum digest_algorithm algorithm)
{
	struct stock stock = stock_absent(text, algorithm);
	AUTO(intake) struct intake *intake = NULL;
	struct err err = {0};

	check_ok(intake_open(store, &stock.digest, &intake, &err), &err);
	check_ok(intake_add(intake, str_of(text), &err), &err);
	check_ok(intake_keep(intake, str_of(repository), &err), &err);
	return stock;
}

static bool has_receipt(struct store *store, const struct stock *stock)
{
	struct receipt receipt;
	struct err err = {0};

	return receipt_find(store, STR("a"), &stock->digest, &receipt, &err) == 1;
}

static int count_item(void *ctx, struct str repository, const struct repository_item *item,
		      struct err *err)
{
	size_t *count = ctx;

	(void)err;
	assert_true(str_equal(repository, STR("a")));
	assert_int_equal(item->source, REPOSITORY_PUSHED);
	++*count;
	return 0;
}

/* Blobs of repository "a": those with a record, or all. */
static size_t count(struct store *store, bool recorded)
{
	AUTO(meta) struct meta *meta = NULL;
	size_t count = 0;
	struct err err = {0};

	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	if (recorded)
		check_ok(repository_each_in(meta, STR("a"), REPOSITORY_BLOB, count_item, &count,
					    &err),
			 &err);
	else
		check_ok(repository_each(meta, count_item, &count, &err), &err);
	return count;
}

static unsigned ask(struct v2_desk *desk, enum http_method method, const struct stock *stock)
{
	char target[512];

	(void)snprintf(target, sizeof(target), "/v2/a/blobs/%s", stock->name);
	return v2_ask(desk, method, target, NULL, STR(""));
}

static void a_collection_makes_records_of_receipts(void **state)
{
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);
	struct store *store = desk.v2.store;
	struct stock one = take_in(store, "a", "one", DIGEST_SHA256);
	struct stock other = take_in(store, "a", "other", DIGEST_SHA512);

	assert_int_equal(count(store, true), 0);
	assert_int_equal(count(store, false), 2);
	assert_int_equal(collect_as(store, true).collected.blobs, 0);
	assert_true(has_receipt(store, &one));
	assert_int_equal(collect(store).collected.blobs, 0);
	assert_false(has_receipt(store, &one) || has_receipt(store, &other));
	assert_int_equal(count(store, true), 2);
	assert_int_equal(count(store, false), 2);
	assert_int_equal(ask(&desk, HTTP_HEAD, &one), 200);
	assert_int_equal(ask(&desk, HTTP_HEAD, &other), 200);
	use_forget(store, &one.blob);
	use_forget(store, &other.blob);
}

static void a_manifest_makes_records_of_what_it_names(void **state)
{
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);
	struct store *store = desk.v2.store;
	struct stock config = take_in(store, "a", "{}", DIGEST_SHA256);
	struct stock other = take_in(store, "a", "other", DIGEST_SHA256);
	char text[1024];

	(void)snprintf(text, sizeof(text), "{\"schemaVersion\":2,\"config\":%s}",
		       stock_descriptor(&config, "text/x"));
	(void)v2_ask(&desk, HTTP_PUT, "/v2/a/manifests/1", NULL, str_of(text));
	v2_check_status(&desk, 201);
	assert_int_equal(count(store, true), 1);
	assert_int_equal(ask(&desk, HTTP_HEAD, &other), 200);
	assert_int_equal(ask(&desk, HTTP_HEAD, &config), 200);
	use_forget(store, &config.blob);
	use_forget(store, &other.blob);
}

static void what_is_deleted_has_neither(void **state)
{
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);
	struct store *store = desk.v2.store;
	struct stock received = take_in(store, "a", "received", DIGEST_SHA256);
	struct stock recorded = take_in(store, "a", "recorded", DIGEST_SHA256);

	assert_int_equal(ask(&desk, HTTP_DELETE, &received), 202);
	assert_int_equal(ask(&desk, HTTP_DELETE, &received), 404);
	(void)collect(store);
	assert_false(stored(store, &received));
	(void)take_in(store, "a", "recorded", DIGEST_SHA256); /* it has both now */
	assert_int_equal(ask(&desk, HTTP_DELETE, &recorded), 202);
	assert_int_equal(ask(&desk, HTTP_GET, &recorded), 404);
	(void)collect(store);
	assert_false(stored(store, &recorded));
	assert_int_equal(count(store, false), 0);
}

/* A repository of which there is nothing yet but what was pushed: it is one of ours. */
static void a_repository_begins_with_a_receipt(void **state)
{
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);
	struct stock stock = take_in(desk.v2.store, "a", "bytes", DIGEST_SHA256);
	AUTO(meta) struct meta *meta = NULL;
	char name[GRAMMAR_NAME_MAX + 1] = "";
	struct err err = {0};

	check_ok(meta_begin(desk.v2.store, META_READ, &meta, &err), &err);
	assert_int_equal(repository_is_begun(meta, STR("a"), &err), 1);
	assert_int_equal(repository_exists(meta, STR("a"), &err), 0);
	assert_int_equal(repository_is_begun(meta, STR("b"), &err), 0);
	assert_int_equal(repository_next_name(meta, name, &err), 1);
	assert_string_equal(name, "a");
	assert_int_equal(repository_next_name(meta, name, &err), 0);
	assert_true(stored(desk.v2.store, &stock));
}

/* Who looks in a snapshot from before a collection finds what that has made a record of. */
static void a_receipt_is_found_until_its_record_is(void **state)
{
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);
	struct store *store = desk.v2.store;
	struct stock one = take_in(store, "a", "one", DIGEST_SHA256);
	struct stock other = take_in(store, "a", "other", DIGEST_SHA512);
	AUTO(meta) struct meta *before = NULL;
	struct repository_item item;
	struct err err = {0};

	check_ok(meta_begin(store, META_READ, &before, &err), &err);
	assert_false(meta_is_outdated(before));
	(void)collect(store);
	assert_false(has_receipt(store, &one) || has_receipt(store, &other));
	assert_true(meta_is_outdated(before));
	assert_int_equal(
		repository_find(before, STR("a"), REPOSITORY_BLOB, &one.digest, &item, &err), 1);
	assert_true(digest_equal(&item.blob, &one.blob));
	assert_int_equal(
		repository_find(before, STR("a"), REPOSITORY_BLOB, &other.digest, &item, &err), 1);
	assert_true(digest_equal(&item.blob, &other.blob));
	assert_int_equal(
		repository_find(before, STR("b"), REPOSITORY_BLOB, &one.digest, &item, &err), 0);
	assert_int_equal(repository_is_begun(before, STR("a"), &err), 1);
	assert_int_equal(repository_is_begun(before, STR("b"), &err), 0);
	assert_int_equal(ask(&desk, HTTP_DELETE, &one), 202);
	assert_int_equal(
		repository_find(before, STR("a"), REPOSITORY_BLOB, &one.digest, &item, &err), 0);
	use_forget(store, &other.blob);
}

/* As a program does that knows no receipts. */
static void collect_without_receipts(struct store *store)
{
	const struct collect_options options = {.names = document_names};
	AUTO(collector) struct collector *collector = NULL;
	struct collect_result result;
	struct meta *snapshot;
	struct err err = {0};

	check_ok(collect_open(store, &options, &collector, &err), &err);
	check_ok(collect_mark(collector, &snapshot, &err), &err);
	check_ok(collect_sweep(collector, &result, &err), &err);
}

static void a_receipt_of_what_is_gone_makes_no_record(void **state)
{
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);
	struct store *store = desk.v2.store;
	struct stock gone = take_in(store, "a", "gone", DIGEST_SHA512);

	collect_without_receipts(store);
	assert_false(stored(store, &gone));
	assert_true(has_receipt(store, &gone));
	assert_int_equal(ask(&desk, HTTP_GET, &gone), 404);
	(void)collect(store);
	assert_false(has_receipt(store, &gone));
	assert_int_equal(count(store, false), 0);
	gone = take_in(store, "a", "gone", DIGEST_SHA512);
	assert_int_equal(ask(&desk, HTTP_HEAD, &gone), 200);
	use_forget(store, &gone.blob);
}

/* A manifest may name what was taken in just now, whoever collects meanwhile. */
static void nothing_that_was_taken_in_is_collected(void **state)
{
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);
	struct store *store = desk.v2.store;
	struct collecting collecting;

	collecting_begin(&collecting, store);
	for (int i = 0; i < ROUNDS; i++) {
		struct stock config;
		char bytes[64];
		char text[1024];

		(void)snprintf(bytes, sizeof(bytes), "{\"n\":%d}", i / 2); /* every one twice */
		config = take_in(store, "a", bytes, v2_both[i % 2]);
		(void)snprintf(text, sizeof(text), "{\"schemaVersion\":2,\"config\":%s}",
			       stock_descriptor(&config, "text/x"));
		(void)v2_ask(&desk, HTTP_PUT, "/v2/a/manifests/1", NULL, str_of(text));
		v2_check_status(&desk, 201);
		assert_true(stored(store, &config));
		if (i % 2 == 0)
			assert_int_equal(ask(&desk, HTTP_DELETE, &config), 202);
	}
	collecting_end(&collecting);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_collection_makes_records_of_receipts),
		TEST(a_manifest_makes_records_of_what_it_names),
		TEST(what_is_deleted_has_neither),
		TEST(a_repository_begins_with_a_receipt),
		TEST(a_receipt_is_found_until_its_record_is),
		TEST(a_receipt_of_what_is_gone_makes_no_record),
		TEST(nothing_that_was_taken_in_is_collected),
	};

	return cmocka_run_group_tests_name("bake/gc_receipts", tests, NULL, NULL);
}
