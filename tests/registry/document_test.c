/* SPDX-License-Identifier: Apache-2.0 */
/* What an image's documents lead to, in a store. */
#include "registry/document.h"

#include "layers/blob.h"
#include "tests/registry/stock.h"

struct seen {
	size_t documents;
	size_t blobs;
	size_t others;
};

static int see(void *ctx, const struct reach_item *item, struct err *err)
{
	struct seen *seen = ctx;

	(void)err;
	seen->documents += item->kind == REACH_DOCUMENT;
	seen->blobs += item->kind == REACH_BYTES;
	seen->others += item->kind == REACH_OTHER;
	return 0;
}

static void put(struct store *store, const char *text, struct digest *out)
{
	struct err err = {0};

	check_ok(blob_put(store, str_of(text), out, &err), &err);
}

/* A document that names one digest as `member`. */
static void put_naming(struct store *store, const char *member, const struct digest *named,
		       struct digest *out)
{
	char text[DIGEST_TEXT_MAX];
	char json[256];

	(void)snprintf(json, sizeof(json), "{\"%s\":{\"digest\":\"%s\"}}", member,
		       digest_format(named, text));
	put(store, json, out);
}

static void an_index_leads_through_indexes_to_layers_and_diff_ids(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest diff_id;
	struct digest layer;
	struct digest config;
	struct digest manifest;
	struct digest inner;
	struct digest outer;
	AUTO(reach) struct reach *reach = NULL;
	struct seen seen = {0};
	struct err err = {0};
	char json[512];
	char texts[3][DIGEST_TEXT_MAX];

	digest_of(STR("a tar"), &diff_id);
	put(fixture->store, "layer", &layer);
	put_naming(fixture->store, "rootfs", &diff_id, &config);
	(void)snprintf(json, sizeof(json),
		       " \n{\"config\":{\"digest\":\"%s\"},\"layers\":[{\"digest\":\"%s\"}]}",
		       digest_format(&config, texts[0]), digest_format(&layer, texts[1]));
	put(fixture->store, json, &manifest);
	put_naming(fixture->store, "manifests", &manifest, &inner);
	put_naming(fixture->store, "manifests", &inner, &outer);
	check_ok(reach_open(fixture->store, document_names, &reach, &err), &err);
	check_ok(reach_from(reach, &outer, see, &seen, &err), &err);
	assert_true(reach_has(reach, &layer));
	assert_true(reach_has(reach, &diff_id));
	assert_int_equal(seen.documents, 4);
	assert_int_equal(seen.blobs, 1);
	assert_int_equal(seen.others, 1);
	check_ok(reach_from(reach, &manifest, see, &seen, &err), &err);
	assert_int_equal(seen.documents, 4);
	reach_forget(reach);
	check_ok(reach_from(reach, &manifest, see, &seen, &err), &err);
	assert_int_equal(seen.documents, 6);
	assert_false(reach_has(reach, &outer));
}

static void documents_that_name_each_other_are_visited_once(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(reach) struct reach *reach = NULL;
	struct digest missing;
	struct digest one;
	struct digest two;
	struct seen seen = {0};
	struct err err = {0};

	digest_of(STR("no such blob"), &missing);
	put_naming(fixture->store, "subject", &missing, &one);
	put_naming(fixture->store, "subject", &one, &two);
	check_ok(reach_open(fixture->store, document_names, &reach, &err), &err);
	check_ok(reach_from(reach, &one, see, &seen, &err), &err);
	check_ok(reach_from(reach, &two, see, &seen, &err), &err);
	assert_int_equal(seen.documents, 2);
	assert_int_equal(seen.others, 1);
}

/* Others may call a blob by its sha512; what is not here under it is nothing. */
static void a_sha512_leads_to_the_blob_that_it_names(void **state)
{
	struct store_fixture *fixture = *state;
	struct stock layer = stock_put(fixture->store, "layer", DIGEST_SHA512);
	struct stock absent = stock_absent("absent", DIGEST_SHA512);
	AUTO(reach) struct reach *reach = NULL;
	struct digest manifest;
	struct seen seen = {0};
	struct err err = {0};
	char json[1024];

	(void)snprintf(json, sizeof(json), "{\"layers\":[%s,%s]}",
		       stock_descriptor(&layer, "text/x"), stock_descriptor(&absent, "text/x"));
	put(fixture->store, json, &manifest);
	check_ok(reach_open(fixture->store, document_names, &reach, &err), &err);
	check_ok(reach_from(reach, &manifest, see, &seen, &err), &err);
	assert_true(reach_has(reach, &layer.blob));
	assert_int_equal(seen.blobs, 1);
	assert_int_equal(seen.others, 0);
}

static int count(void *ctx, const struct digest *digest, struct err *err)
{
	int *found = ctx;

	(void)digest, (void)err;
	(*found)++;
	return 0;
}

#define HEX63 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"

static void a_digest_is_found_however_it_is_written(void **state)
{
	static const struct {
		const char *text;
		int found;
	} cases[] = {
		{"{\"a\":\"sha256:" HEX63 "f\"}", 1},
		{"{\"a\":\"\\u0073ha256:" HEX63 "f\"}", 1},
		{"{\"a\":[{\"b\":[\"sha2\\u00356:" HEX63 "0\"]},\"sha256:" HEX63 "1\"]}", 2},
		{"{\"a\":\"sha256:" HEX63 "\"}", 0},
		{"{\"a\":\"sha256:" HEX63 "F\"}", 0},
		{"sha256:sha256:" HEX63 "f", 1},
		{"{\"a\":\"sha512:" HEX63 "f" HEX63 "f\"}", 1},
		{"{\"a\":\"sha51\\u0032:" HEX63 "f" HEX63 "f\"}", 1},
		{"{\"a\":\"sha512:" HEX63 "f" HEX63 "\"}", 0},
		{"{\"\\", 0},
		{"{\\ sha256:" HEX63 "f", 1},
		{"", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = {0};
		int found = 0;

		check_ok(document_names(str_of(cases[i].text), count, &found, &err), &err);
		assert_int_equal(found, cases[i].found);
	}
}

#define STORE_TEST(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(an_index_leads_through_indexes_to_layers_and_diff_ids),
		STORE_TEST(documents_that_name_each_other_are_visited_once),
		STORE_TEST(a_sha512_leads_to_the_blob_that_it_names),
		cmocka_unit_test(a_digest_is_found_however_it_is_written),
	};

	return cmocka_run_group_tests_name("registry/document", tests, NULL, NULL);
}
