/* SPDX-License-Identifier: Apache-2.0 */
/* Damage in blobs/ is found, and mended so far that what is lost can come again. */
#include "layers/verify.h"

#include "layers/blob_priv.h"
#include "tests/layers/blobs.h"
#include "tests/layers/store_check.h"
#include "tests/layers/store_fixture.h"

#include <endian.h>

#define BIG (BLOB_CHUNK_MAX + 9)

static struct digest put(struct store *store, struct str bytes)
{
	struct digest digest;
	struct err err = {0};

	check_ok(blob_put(store, bytes, &digest, &err), &err);
	return digest;
}

/* A blob of two chunks; the first one is the same in all. */
static struct digest put_big(struct store *store, char last)
{
	auto_free char *bytes = calloc(1, BIG);

	assert_non_null(bytes);
	bytes[BIG - 1] = last;
	return put(store, (struct str){bytes, BIG});
}

static struct verify_findings verify(struct store *store)
{
	const struct verify_options options = {.cancel = NULL};
	struct verify_findings findings;
	struct err err = {0};

	check_ok(verify_read(store, &options, &findings, &err), &err);
	return findings;
}

static void check_clean(struct store *store)
{
	auto_verify_findings struct verify_findings findings = verify(store);

	assert_int_equal(findings.chunks.count + findings.blobs.count + findings.wrong_counts, 0);
}

static void mend(struct store *store, struct verify_findings *findings)
{
	struct err err = {0};

	check_ok(verify_again(store, findings, &err), &err);
	check_ok(verify_mend(store, findings, &err), &err);
	check_clean(store);
	(void)store_check(store);
}

/* A record of a table gets this value; without one it goes. */
static void set(struct store *store, MDB_dbi table, struct str key, struct str value)
{
	AUTO(txn) MDB_txn *txn = NULL;
	const struct store_blobs *blobs;
	struct err err = {0};

	check_ok(store_blobs(store, &blobs, &err), &err);
	check_ok(db_begin(&blobs->db, DB_WRITE, &txn, &err), &err);
	if (value.len > 0)
		check_ok(db_put(&blobs->db, txn, table, key, value, &err), &err);
	else
		assert_int_equal(db_del(&blobs->db, txn, table, key, &err), 1);
	check_ok(db_commit(&blobs->db, steal_ptr(&txn), &err), &err);
}

static const struct store_blobs *tables(struct store *store)
{
	const struct store_blobs *blobs;
	struct err err = {0};

	check_ok(store_blobs(store, &blobs, &err), &err);
	return blobs;
}

static struct str key_of(const struct digest *digest)
{
	return (struct str){(const char *)digest->bytes, 32};
}

static struct digest first_chunk(struct store *store, const struct digest *blob)
{
	AUTO(blob_reader) struct blob_reader *reader = NULL;
	struct blob_chunk chunk;
	struct str bytes;
	struct err err = {0};

	check_ok(blob_reader_open(store, blob, &reader, &err), &err);
	assert_int_equal(blob_reader_next(reader, &bytes, &chunk, &err), 1);
	return chunk.id;
}

static void a_whole_store_is_clean(void **state)
{
	struct store_fixture *fixture = *state;
	auto_verify_findings struct verify_findings findings = {0};

	check_clean(fixture->store);
	(void)put(fixture->store, STR("small"));
	(void)put_big(fixture->store, 1);
	(void)put_big(fixture->store, 2);
	findings = verify(fixture->store);
	assert_int_equal(findings.blob_count, 3);
	assert_int_equal(findings.chunk_count, 4);
	assert_int_equal(findings.chunk_bytes, BLOB_CHUNK_MAX + 9 + 9 + 5);
	check_clean(fixture->store);
}

static void a_flipped_byte_takes_every_blob_that_holds_it(void **state)
{
	struct store_fixture *fixture = *state;
	struct store *store = fixture->store;
	struct digest big = put_big(store, 1);
	struct digest other = put_big(store, 2);
	struct digest kept = put(store, STR("kept"));
	struct digest chunk = first_chunk(store, &big);
	auto_verify_findings struct verify_findings findings = {0};
	auto_free char *bytes = calloc(1, BLOB_CHUNK_MAX);
	struct err err = {0};

	assert_non_null(bytes);
	bytes[1000] = 1;
	set(store, tables(store)->chunks, key_of(&chunk), (struct str){bytes, BLOB_CHUNK_MAX});
	findings = verify(store);
	assert_int_equal(findings.chunks.count, 1);
	assert_true(digest_set_has(&findings.chunks, &chunk));
	assert_int_equal(findings.blobs.count, 2);
	assert_true(digest_set_has(&findings.blobs, &big));
	assert_true(digest_set_has(&findings.blobs, &other));
	assert_int_equal(findings.wrong_counts, 0);
	mend(store, &findings);
	check_ok(blob_check(store, &kept, &err), &err);
	check_err(blob_check(store, &big, &err), &err, ERR_NOT_FOUND);
	big = put_big(store, 1); /* and it comes again, whole */
	check_ok(blob_check(store, &big, &err), &err);
	check_clean(store);
}

static void a_blob_of_one_chunk_is_as_whole_as_that(void **state)
{
	struct store_fixture *fixture = *state;
	struct store *store = fixture->store;
	struct digest flipped = put(store, STR("flipped"));
	struct digest missing = put(store, STR("missing"));
	auto_verify_findings struct verify_findings findings = {0};

	set(store, tables(store)->chunks, key_of(&flipped), STR("flopped"));
	set(store, tables(store)->chunks, key_of(&missing), STR(""));
	findings = verify(store);
	assert_int_equal(findings.chunks.count, 1);
	assert_int_equal(findings.blobs.count, 2);
	mend(store, &findings);
	assert_int_equal(store_check(store), 0);
}

static void a_missing_list_is_found(void **state)
{
	struct store_fixture *fixture = *state;
	struct store *store = fixture->store;
	struct digest big = put_big(store, 1);
	auto_verify_findings struct verify_findings findings = {0};
	char page[36] = {0};

	memcpy(page, big.bytes, 32);
	set(store, tables(store)->pages, (struct str){page, sizeof(page)}, STR(""));
	findings = verify(store);
	assert_true(digest_set_has(&findings.blobs, &big));
	assert_int_equal(findings.wrong_counts, 2);
	mend(store, &findings);
	assert_int_equal(store_check(store), 0);
}

static void a_removed_entry_leaves_a_list_that_is_found(void **state)
{
	struct store_fixture *fixture = *state;
	struct store *store = fixture->store;
	struct digest big = put_big(store, 1);
	auto_verify_findings struct verify_findings findings = {0};

	(void)put_big(store, 2);
	set(store, tables(store)->blobs, (struct str){(const char *)&big, 33}, STR(""));
	findings = verify(store);
	assert_int_equal(findings.blobs.count, 0);
	assert_int_equal(findings.wrong_counts, 3); /* two chunks, one list */
	mend(store, &findings);
	assert_int_equal(store_check(store), 1);
}

static void wrong_counts_are_made_right(void **state)
{
	struct store_fixture *fixture = *state;
	struct store *store = fixture->store;
	struct digest more = put(store, STR("more"));
	struct digest none = put(store, STR("none"));
	struct digest stray;
	uint64_t count = htole64(7);
	struct str seven = {(const char *)&count, sizeof(count)};
	auto_verify_findings struct verify_findings findings = {0};

	digest_of(STR("stray"), &stray);
	set(store, tables(store)->counts, key_of(&more), seven);
	set(store, tables(store)->counts, key_of(&none), STR(""));
	set(store, tables(store)->counts, key_of(&stray), seven);
	findings = verify(store);
	assert_int_equal(findings.blobs.count, 0);
	assert_int_equal(findings.wrong_counts, 3);
	mend(store, &findings);
	assert_int_equal(store_check(store), 2);
}

static void what_is_right_again_is_no_finding(void **state)
{
	struct store_fixture *fixture = *state;
	struct store *store = fixture->store;
	struct digest blob = put(store, STR("flipped"));
	auto_verify_findings struct verify_findings findings = {0};
	struct err err = {0};

	set(store, tables(store)->chunks, key_of(&blob), STR("flopped"));
	findings = verify(store);
	set(store, tables(store)->chunks, key_of(&blob), STR("flipped"));
	check_ok(verify_again(store, &findings, &err), &err);
	assert_int_equal(findings.chunks.count + findings.blobs.count, 0);
	mend(store, &findings);
	check_ok(blob_check(store, &blob, &err), &err);
}

static void a_cancel_ends_it(void **state)
{
	struct store_fixture *fixture = *state;
	struct cancel cancel;
	const struct verify_options options = {.cancel = &cancel};
	struct verify_findings findings;
	struct err err = {0};

	(void)put_big(fixture->store, 1);
	check_ok(cancel_init(&cancel, &err), &err);
	cancel_raise(&cancel);
	check_err(verify_read(fixture->store, &options, &findings, &err), &err, ERR_CANCELLED);
	cancel_done(&cancel);
}

#define STORE_TEST(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(a_whole_store_is_clean),
		STORE_TEST(a_flipped_byte_takes_every_blob_that_holds_it),
		STORE_TEST(a_blob_of_one_chunk_is_as_whole_as_that),
		STORE_TEST(a_missing_list_is_found),
		STORE_TEST(a_removed_entry_leaves_a_list_that_is_found),
		STORE_TEST(wrong_counts_are_made_right),
		STORE_TEST(what_is_right_again_is_no_finding),
		STORE_TEST(a_cancel_ends_it),
	};

	return cmocka_run_group_tests_name("layers/verify", tests, NULL, NULL);
}
