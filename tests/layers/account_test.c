/* SPDX-License-Identifier: Apache-2.0 */
/* To which image bytes belong. */
#include "layers/account.h"

#include "layers/blob.h"
#include "tests/layers/store_fixture.h"

/* A document is "{" and digests, each with a space before it. */
static int names(struct str document, reach_add_fn *add, void *ctx, struct err *err)
{
	struct str word;

	while (str_cut(&document, ' ', &word)) {
		struct digest digest;
		struct err none;

		if (digest_parse(word, &digest, &none) == 0 && add(ctx, &digest, err) < 0)
			return -1;
	}
	return 0;
}

static struct digest put(struct store *store, struct str bytes)
{
	struct digest digest;
	struct err err = {0};

	check_ok(blob_put(store, bytes, &digest, &err), &err);
	return digest;
}

static struct digest put_naming(struct store *store, const struct digest *named)
{
	char text[DIGEST_TEXT_MAX];
	char document[2 + DIGEST_TEXT_MAX];

	(void)snprintf(document, sizeof(document), "{ %s", digest_format(named, text));
	return put(store, str_of(document));
}

#define DOCUMENT (2 + sizeof("sha256:") - 1 + 64)

/* Two blobs of two chunks, of which they share the first. */
static void put_layers(struct store *store, struct digest layers[2])
{
	auto_free char *bytes = calloc(1, BLOB_CHUNK_MAX + 7);

	assert_non_null(bytes);
	for (char i = 0; i < 2; i++) {
		memset(bytes + BLOB_CHUNK_MAX, i, 7);
		layers[(int)i] = put(store, (struct str){bytes, BLOB_CHUNK_MAX + 7});
	}
}

static struct account *account(struct store *store)
{
	struct account *account;
	struct err err = {0};

	check_ok(account_open(store, names, &account, &err), &err);
	return account;
}

static int count_blob(void *ctx, const struct account_blob *blob, struct err *err)
{
	uint32_t *seen = ctx;

	(void)err;
	seen[blob->images]++;
	return 0;
}

static void an_image_has_its_own_chunks_and_shared_ones(void **state)
{
	struct store_fixture *fixture = *state;
	struct store *store = fixture->store;
	AUTO(account) struct account *found = NULL;
	struct account_totals totals;
	struct digest layers[2];
	struct digest images[2];
	uint32_t seen[3] = {0};
	struct err err = {0};

	put_layers(store, layers);
	for (size_t i = 0; i < 2; i++)
		images[i] = put_naming(store, &layers[i]);
	found = account(store);
	for (size_t i = 0; i < 2; i++)
		check_ok(account_image(found, &images[i], &err), &err);
	check_ok(account_settle(found, count_blob, seen, &totals, &err), &err);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(account_of(found, i)->bytes, DOCUMENT + BLOB_CHUNK_MAX + 7);
		assert_int_equal(account_of(found, i)->unique, DOCUMENT + 7);
	}
	assert_int_equal(totals.chunks, 5);
	assert_int_equal(totals.shared_chunks, 1);
	assert_int_equal(totals.shared_bytes, BLOB_CHUNK_MAX);
	assert_int_equal(totals.chunk_bytes, BLOB_CHUNK_MAX + 2 * (DOCUMENT + 7));
	assert_int_equal(totals.blob_bytes, 2 * (BLOB_CHUNK_MAX + DOCUMENT + 7));
	assert_int_equal(totals.class_bytes[ACCOUNT_IMAGES], totals.chunk_bytes);
	assert_int_equal(seen[1], 4);
}

static void a_layer_of_two_images_is_neithers_own(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(account) struct account *found = NULL;
	struct digest layer = put(fixture->store, STR("layer"));
	struct digest first = put_naming(fixture->store, &layer);
	struct digest second = put_naming(fixture->store, &first);
	struct account_totals totals;
	uint32_t seen[3] = {0};
	struct err err = {0};

	found = account(fixture->store);
	check_ok(account_image(found, &first, &err), &err);
	check_ok(account_image(found, &second, &err), &err);
	check_ok(account_settle(found, count_blob, seen, &totals, &err), &err);
	assert_int_equal(account_of(found, 0)->unique, 0);
	assert_int_equal(account_of(found, 1)->unique, DOCUMENT);
	assert_int_equal(seen[1], 1);
	assert_int_equal(seen[2], 2);
}

static void what_no_image_holds_is_of_who_names_it(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(account) struct account *found = NULL;
	struct digest image = put(fixture->store, STR("image"));
	struct digest step = put(fixture->store, STR("of a step"));
	struct digest log = put(fixture->store, STR("of the log"));
	struct account_totals totals;
	struct err err = {0};

	(void)put(fixture->store, STR("of nobody"));
	found = account(fixture->store);
	check_ok(account_image(found, &image, &err), &err);
	check_ok(account_claim(found, ACCOUNT_STEPS, &image, &err), &err);
	check_ok(account_claim(found, ACCOUNT_STEPS, &step, &err), &err);
	check_ok(account_claim(found, ACCOUNT_LOGS, &log, &err), &err);
	check_ok(account_claim(found, ACCOUNT_STEPS, &log, &err), &err);
	check_ok(account_settle(found, NULL, NULL, &totals, &err), &err);
	assert_int_equal(totals.class_bytes[ACCOUNT_IMAGES], strlen("image"));
	assert_int_equal(totals.class_bytes[ACCOUNT_STEPS],
			 strlen("of a step") + strlen("of the log"));
	assert_int_equal(totals.class_bytes[ACCOUNT_LOGS], 0);
	assert_int_equal(totals.class_bytes[ACCOUNT_UNNAMED], strlen("of nobody"));
}

#define STORE_TEST(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(an_image_has_its_own_chunks_and_shared_ones),
		STORE_TEST(a_layer_of_two_images_is_neithers_own),
		STORE_TEST(what_no_image_holds_is_of_who_names_it),
	};

	return cmocka_run_group_tests_name("layers/account", tests, NULL, NULL);
}
