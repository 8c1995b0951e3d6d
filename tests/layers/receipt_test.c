/* SPDX-License-Identifier: Apache-2.0 */
/* Receipts: they come with their blobs, are found by name, and are taken back. */
#include "layers/receipt.h"

#include "layers/blob.h"
#include "layers/store_priv.h"
#include "tests/layers/store_fixture.h"

static void put(struct store *store, const char *name, const char *text,
		enum digest_algorithm algorithm, struct digest *out)
{
	AUTO(blob_writer) struct blob_writer *writer = NULL;
	AUTO(hasher) struct hasher hasher = {0};
	struct blob_info info;
	struct err err = {0};

	hasher_init_as(&hasher, algorithm);
	hasher_add(&hasher, str_of(text));
	hasher_final(&hasher, out);
	check_ok(blob_writer_open(store, &writer, &err), &err);
	blob_writer_hash_as(writer, algorithm);
	blob_writer_receipt(writer, str_of(name));
	check_ok(blob_writer_add(writer, str_of(text), &err), &err);
	check_ok(blob_writer_commit(writer, out, &info, &err), &err);
}

static int find(struct store *store, const char *name, const struct digest *digest,
		struct receipt *out)
{
	struct err err = {0};
	int found = receipt_find(store, str_of(name), digest, out, &err);

	check_ok(found, &err);
	return found;
}

static void a_receipt_says_for_whom_what_was_put(void **state)
{
	static const enum digest_algorithm both[] = {DIGEST_SHA256, DIGEST_SHA512};
	struct store_fixture *fixture = *state;

	for (size_t i = 0; i < 2; i++) {
		int64_t before = clock_now_ms();
		struct digest digest;
		struct digest own;
		struct receipt receipt;

		put(fixture->store, "tools/app", "eight by", both[i], &digest);
		digest_of(STR("eight by"), &own);
		assert_int_equal(find(fixture->store, "tools/app", &digest, &receipt), 1);
		assert_string_equal(receipt.name, "tools/app");
		assert_true(digest_equal(&receipt.digest, &digest));
		assert_true(digest_equal(&receipt.blob, &own));
		assert_int_equal(receipt.size, 8);
		assert_true(receipt.at_ms >= before && receipt.at_ms <= clock_now_ms());
		assert_int_equal(find(fixture->store, "tools/ap", &digest, &receipt), 0);
	}
}

static void what_is_not_committed_leaves_none(void **state)
{
	struct store_fixture *fixture = *state;
	struct blob_writer *writer;
	struct blob_info info;
	struct digest other;
	struct receipt receipt;
	struct err err = {0};

	digest_of(STR("other"), &other);
	check_ok(blob_writer_open(fixture->store, &writer, &err), &err);
	blob_writer_receipt(writer, STR("a"));
	check_ok(blob_writer_add(writer, STR("bytes"), &err), &err);
	check_err(blob_writer_commit(writer, &other, &info, &err), &err, ERR_CORRUPT);
	blob_writer_close(writer);
	assert_int_equal(receipt_read(fixture->store, NULL, &receipt, 1, &err), 0);
	assert_int_equal(receipt_exists(fixture->store, STR("a"), &err), 0);
}

static void they_are_read_by_name_some_at_a_time(void **state)
{
	static const char *const names[] = {"a", "a-b", "a/b", "ab"};
	struct store_fixture *fixture = *state;
	char name[RECEIPT_NAME_MAX + 1] = "";
	struct receipt two[2];
	struct receipt last = {.name = ""};
	struct err err = {0};
	size_t count = 0;
	int n;

	for (size_t i = 4; i-- > 0;) {
		struct digest digest;

		put(fixture->store, names[i], "one", DIGEST_SHA256, &digest);
		put(fixture->store, names[i], "two", DIGEST_SHA512, &digest);
		assert_int_equal(receipt_exists(fixture->store, str_of(names[i]), &err), 1);
	}
	assert_int_equal(receipt_exists(fixture->store, STR("a-"), &err), 0);
	while ((n = receipt_read(fixture->store, count ? &last : NULL, two, 2, &err)) > 0) {
		assert_int_equal(n, 2);
		assert_string_equal(two[0].name, names[count]);
		assert_string_equal(two[1].name, names[count++]);
		assert_int_equal(two[0].digest.algorithm, DIGEST_SHA256);
		assert_int_equal(two[1].digest.algorithm, DIGEST_SHA512);
		last = two[1];
	}
	check_ok(n, &err);
	assert_int_equal(count, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(receipt_next_name(fixture->store, name, &err), 1);
		assert_string_equal(name, names[i]);
	}
	assert_int_equal(receipt_next_name(fixture->store, name, &err), 0);
}

static void only_what_was_read_is_taken_back(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest digest;
	struct receipt old;
	struct receipt now;
	struct err err = {0};

	put(fixture->store, "a", "bytes", DIGEST_SHA256, &digest);
	assert_int_equal(find(fixture->store, "a", &digest, &old), 1);
	old.at_ms--; /* it has been put once more since */
	check_ok(receipt_take_back(fixture->store, &old, 1, &err), &err);
	assert_int_equal(find(fixture->store, "a", &digest, &now), 1);
	check_ok(receipt_take_back(fixture->store, &now, 1, &err), &err);
	assert_int_equal(find(fixture->store, "a", &digest, &now), 0);
	check_ok(receipt_take_back(fixture->store, &now, 1, &err), &err);
}

static void one_is_dropped_whatever_it_says(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest digest;
	struct err err = {0};

	put(fixture->store, "a", "bytes", DIGEST_SHA512, &digest);
	assert_int_equal(receipt_drop(fixture->store, STR("b"), &digest, &err), 0);
	assert_int_equal(receipt_drop(fixture->store, STR("a"), &digest, &err), 1);
	assert_int_equal(receipt_drop(fixture->store, STR("a"), &digest, &err), 0);
}

static void a_name_that_is_too_long_has_none(void **state)
{
	struct store_fixture *fixture = *state;
	char longest[RECEIPT_NAME_MAX + 2];
	struct str name = {longest, RECEIPT_NAME_MAX + 1};
	struct digest digest;
	struct receipt receipt;
	struct err err = {0};

	memset(longest, 'n', sizeof(longest));
	longest[RECEIPT_NAME_MAX] = '\0';
	put(fixture->store, longest, "bytes", DIGEST_SHA512, &digest);
	assert_int_equal(find(fixture->store, longest, &digest, &receipt), 1);
	longest[RECEIPT_NAME_MAX] = 'n';
	assert_int_equal(receipt_find(fixture->store, name, &digest, &receipt, &err), 0);
	assert_int_equal(receipt_exists(fixture->store, name, &err), 0);
	assert_int_equal(receipt_find(fixture->store, STR(""), &digest, &receipt, &err), 0);
}

/* As a store was made before. */
static void drop_table(struct store *store)
{
	const struct store_blobs *blobs;
	MDB_txn *txn;
	struct err err = {0};

	check_ok(store_blobs(store, &blobs, &err), &err);
	check_ok(db_begin(&blobs->db, DB_WRITE, &txn, &err), &err);
	assert_int_equal(mdb_drop(txn, blobs->receipts, 1), 0);
	check_ok(db_commit(&blobs->db, txn, &err), &err);
}

static void an_older_store_gets_the_table(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest digest;
	struct receipt receipt;

	drop_table(fixture->store);
	(void)store_fixture_reopen(fixture, false);
	put(fixture->store, "a", "bytes", DIGEST_SHA256, &digest);
	assert_int_equal(find(fixture->store, "a", &digest, &receipt), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_receipt_says_for_whom_what_was_put), TEST(what_is_not_committed_leaves_none),
		TEST(they_are_read_by_name_some_at_a_time), TEST(only_what_was_read_is_taken_back),
		TEST(one_is_dropped_whatever_it_says),      TEST(a_name_that_is_too_long_has_none),
		TEST(an_older_store_gets_the_table),
	};

	return cmocka_run_group_tests_name("layers/receipt", tests, NULL, NULL);
}
