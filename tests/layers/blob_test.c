/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/blob.h"
#include "layers/blob_priv.h"
#include "tests/layers/blobs.h"
#include "tests/layers/store_fixture.h"

#define MIB ((size_t)1024 * 1024)

/* Bytes that look random and are the same for the same seed. */
static char *noise(size_t len, uint64_t seed)
{
	char *bytes = malloc(len + 8);

	assert_non_null(bytes);
	for (size_t i = 0; i < len; i += 8) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		memcpy(bytes + i, &seed, 8);
	}
	return bytes;
}

static struct blob_writer *begin(struct store *store)
{
	struct blob_writer *writer;
	struct err err = {0};

	check_ok(blob_writer_open(store, &writer, &err), &err);
	return writer;
}

static void add(struct blob_writer *writer, struct str bytes)
{
	struct err err = {0};

	check_ok(blob_writer_add(writer, bytes, &err), &err);
}

static const struct fingerprint_key no_key = {{0}};

static void add_frame(struct blob_writer *writer, const char *plain, struct str frame)
{
	struct fingerprint print;
	struct err err = {0};

	fingerprint_of(&no_key, str_of(plain), &print);
	check_ok(
		blob_writer_add_frame(writer, "zstd", &print, (uint32_t)strlen(plain), frame, &err),
		&err);
}

/* Each chunk is its own number, and claims one byte more when inflated. */
static void check_numbers(struct blob_reader *reader, uint32_t count)
{
	struct blob_chunk chunk;
	struct str bytes;
	uint32_t at = 0;
	struct err err = {0};

	for (; blob_reader_next(reader, &bytes, &chunk, &err) == 1; at++) {
		assert_memory_equal(bytes.ptr, &at, sizeof(at));
		assert_int_equal(chunk.plain_size, at + 1);
	}
	assert_int_equal(at, count);
}

static void write_foreign(struct store *store, struct str bytes, size_t piece,
			  struct blob_info *out, uint64_t *out_new)
{
	AUTO(blob_writer) struct blob_writer *writer = NULL;
	struct err err = {0};

	check_ok(blob_writer_open(store, &writer, &err), &err);
	for (size_t at = 0; at < bytes.len; at += piece) {
		size_t n = bytes.len - at < piece ? bytes.len - at : piece;

		check_ok(blob_writer_add(writer, (struct str){bytes.ptr + at, n}, &err), &err);
	}
	check_ok(blob_writer_commit(writer, NULL, out, &err), &err);
	*out_new = blob_writer_new_bytes(writer);
}

static uint64_t count_of(struct store *store, struct str bytes)
{
	const struct store_blobs *blobs;
	AUTO(txn) MDB_txn *txn = NULL;
	struct digest id;
	uint64_t count;
	struct err err = {0};

	digest_of(bytes, &id);
	check_ok(store_blobs(store, &blobs, &err), &err);
	check_ok(db_begin(&blobs->db, DB_READ, &txn, &err), &err);
	check_ok(chunk_count(blobs, txn, &id, &count, &err), &err);
	return count;
}

static void put_gives_back_what_it_took(void **state)
{
	struct store_fixture *fixture = *state;
	auto_buf struct buf back = BUF_INIT(64);
	struct digest digest;
	struct digest expected;
	struct err err = {0};

	digest_of(STR("hello"), &expected);
	check_ok(blob_put(fixture->store, STR("hello"), &digest, &err), &err);
	assert_true(digest_equal(&digest, &expected));
	check_ok(blob_read_all(store_fixture_reopen(fixture, false), &digest, &back, &err), &err);
	assert_string_equal(back.ptr, "hello");
	check_ok(blob_check(fixture->store, &digest, &err), &err);
}

static void nothing_is_a_blob_too(void **state)
{
	struct store_fixture *fixture = *state;
	auto_buf struct buf back = BUF_INIT(64);
	struct digest digest;
	struct err err = {0};

	check_ok(blob_put(fixture->store, STR(""), &digest, &err), &err);
	check_ok(blob_read_all(fixture->store, &digest, &back, &err), &err);
	assert_int_equal(back.len, 0);
	check_ok(blob_check(fixture->store, &digest, &err), &err);
}

static uint32_t stamp_of(struct store *store, const struct digest *digest)
{
	const struct store_blobs *blobs;
	AUTO(txn) MDB_txn *txn = NULL;
	struct blob_entry entry;
	struct err err = {0};

	check_ok(store_blobs(store, &blobs, &err), &err);
	check_ok(db_begin(&blobs->db, DB_READ, &txn, &err), &err);
	assert_int_equal(blob_entry_find(blobs, txn, digest, &entry, &err), 1);
	return entry.stamp;
}

/* A collector that began before spares it. */
static void putting_twice_is_one_blob_that_counts_as_new(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest digest;
	uint32_t before;
	struct err err = {0};

	check_ok(blob_put(fixture->store, STR("twice"), &digest, &err), &err);
	before = stamp_of(fixture->store, &digest);
	check_ok(blob_put(fixture->store, STR("twice"), &digest, &err), &err);
	assert_true(blob_stamp_is_after(stamp_of(fixture->store, &digest), before));
	assert_int_equal(count_of(fixture->store, STR("twice")), 1);
}

/* A layer of ours that comes back from somebody who pulled it. */
static void what_is_put_again_in_other_pieces_stays_as_it_was_cut(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(blob_writer) struct blob_writer *writer = begin(fixture->store);
	AUTO(blob_writer) struct blob_writer *again = begin(fixture->store);
	auto_buf struct buf all = BUF_INIT(64);
	struct blob_info first;
	struct blob_info second;
	struct err err = {0};

	add_frame(writer, "a", STR("one "));
	add_frame(writer, "b", STR("two "));
	add_frame(writer, "c", STR("three"));
	check_ok(blob_writer_commit(writer, NULL, &first, &err), &err);
	add(again, STR("one two three"));
	check_ok(blob_writer_commit(again, &first.digest, &second, &err), &err);
	assert_int_equal(second.chunks, 3);
	assert_int_equal(blob_find(fixture->store, &first.digest, &second, &err), 1);
	assert_int_equal(second.chunks, 3);
	check_ok(blob_read_all(fixture->store, &first.digest, &all, &err), &err);
	assert_string_equal(all.ptr, "one two three");
	assert_int_equal(count_of(fixture->store, STR("one ")), 1);
	assert_int_equal(count_of(fixture->store, STR("one two three")), 0);
}

static void a_blob_that_is_not_there_is_a_miss(void **state)
{
	struct store_fixture *fixture = *state;
	auto_buf struct buf back = BUF_INIT(64);
	struct blob_info info;
	struct digest digest;
	struct err err = {0};

	digest_of(STR("nobody stored me"), &digest);
	assert_int_equal(blob_find(fixture->store, &digest, &info, &err), 0);
	check_err(blob_read_all(fixture->store, &digest, &back, &err), &err, ERR_NOT_FOUND);
}

static void a_small_ceiling_is_a_limit(void **state)
{
	struct store_fixture *fixture = *state;
	auto_buf struct buf back = BUF_INIT(4);
	struct digest digest;
	struct err err = {0};

	check_ok(blob_put(fixture->store, STR("hello"), &digest, &err), &err);
	check_err(blob_read_all(fixture->store, &digest, &back, &err), &err, ERR_LIMIT);
}

static void foreign_bytes_are_cut_every_mebibyte_whatever_the_pieces(void **state)
{
	struct store_fixture *fixture = *state;
	auto_free char *bytes = noise(20 * MIB + 5, 1);
	struct str all = {bytes, 20 * MIB + 5};
	struct blob_info first;
	struct blob_info second;
	uint64_t new_bytes;
	struct err err = {0};

	write_foreign(fixture->store, all, 3 * MIB, &first, &new_bytes);
	assert_int_equal(first.chunks, 21);
	assert_int_equal(first.size, all.len);
	assert_int_equal(new_bytes, all.len);
	write_foreign(fixture->store, all, 70001, &second, &new_bytes);
	assert_true(digest_equal(&first.digest, &second.digest));
	assert_int_equal(new_bytes, 0);
	check_ok(blob_check(fixture->store, &first.digest, &err), &err);
	assert_int_equal(count_of(fixture->store, (struct str){bytes, MIB}), 1);
}

static void blobs_share_chunks_and_count_them(void **state)
{
	struct store_fixture *fixture = *state;
	auto_free char *bytes = noise(3 * MIB, 2);
	struct blob_info info;
	uint64_t new_bytes;

	memcpy(bytes + 2 * MIB, bytes, MIB);
	write_foreign(fixture->store, (struct str){bytes, 3 * MIB}, MIB, &info, &new_bytes);
	assert_int_equal(new_bytes, 2 * MIB);
	write_foreign(fixture->store, (struct str){bytes, 2 * MIB}, MIB, &info, &new_bytes);
	assert_int_equal(new_bytes, 0);
	assert_int_equal(count_of(fixture->store, (struct str){bytes, MIB}), 3);
	assert_int_equal(count_of(fixture->store, (struct str){bytes + MIB, MIB}), 2);
}

static void a_long_list_of_chunks_is_paged(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(blob_writer) struct blob_writer *writer = NULL;
	AUTO(blob_reader) struct blob_reader *reader = NULL;
	struct blob_info info;
	struct err err = {0};

	writer = begin(fixture->store);
	for (uint32_t i = 0; i < 3000; i++) {
		struct fingerprint plain;

		fingerprint_of(&no_key, (struct str){(const char *)&i, sizeof(i)}, &plain);
		check_ok(blob_writer_add_frame(writer, "test-1", &plain, i + 1,
					       (struct str){(const char *)&i, sizeof(i)}, &err),
			 &err);
	}
	check_ok(blob_writer_commit(writer, NULL, &info, &err), &err);
	check_ok(blob_reader_open(fixture->store, &info.digest, &reader, &err), &err);
	assert_int_equal(blob_reader_info(reader)->chunks, 3000);
	check_numbers(reader, 3000);
	check_ok(blob_check(fixture->store, &info.digest, &err), &err);
}

static void a_frame_is_known_by_codec_and_plain_bytes(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(blob_writer) struct blob_writer *first = NULL;
	AUTO(blob_writer) struct blob_writer *second = NULL;
	struct fingerprint plain;
	struct blob_info one;
	struct blob_info two;
	struct err err = {0};

	fingerprint_of(&no_key, STR("plain"), &plain);
	check_ok(blob_writer_open(fixture->store, &first, &err), &err);
	assert_int_equal(blob_writer_add_known(first, "zstd", &plain, &err), 0);
	check_ok(blob_writer_add_frame(first, "zstd", &plain, 5, STR("frame"), &err), &err);
	check_ok(blob_writer_commit(first, NULL, &one, &err), &err);

	check_ok(blob_writer_open(fixture->store, &second, &err), &err);
	assert_int_equal(blob_writer_add_known(second, "gzip", &plain, &err), 0);
	assert_int_equal(blob_writer_add_known(second, "zstd", &plain, &err), 1);
	check_ok(blob_writer_commit(second, &one.digest, &two, &err), &err);
	assert_int_equal(two.size, 5);
	assert_int_equal(blob_writer_new_bytes(second), 0);
}

static void foreign_bytes_and_frames_keep_their_order(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(blob_writer) struct blob_writer *writer = NULL;
	auto_buf struct buf back = BUF_INIT(64);
	struct blob_info info;
	struct err err = {0};

	writer = begin(fixture->store);
	add(writer, STR("one "));
	add_frame(writer, "b", STR("two "));
	add(writer, STR("three"));
	check_ok(blob_writer_commit(writer, NULL, &info, &err), &err);
	check_ok(blob_read_all(fixture->store, &info.digest, &back, &err), &err);
	assert_string_equal(back.ptr, "one two three");
}

static void an_unexpected_digest_makes_no_blob(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(blob_writer) struct blob_writer *writer = NULL;
	struct digest expected;
	struct digest found;
	struct blob_info info;
	struct err err = {0};

	digest_of(STR("wanted"), &expected);
	digest_of(STR("got"), &found);
	check_ok(blob_writer_open(fixture->store, &writer, &err), &err);
	check_ok(blob_writer_add(writer, STR("got"), &err), &err);
	check_err(blob_writer_commit(writer, &expected, &info, &err), &err, ERR_CORRUPT);
	assert_int_equal(blob_find(fixture->store, &expected, &info, &err), 0);
	assert_int_equal(blob_find(fixture->store, &found, &info, &err), 0);
}

static void a_sha512_names_the_same_blob(void **state)
{
	static const char text[] =
		"sha512:9b71d224bd62f3785d96d46ad3ea3d73319bfbc2890caadae2dff72519673ca72323c3d99b"
		"a5c11d7c7acc6e14b8c5da0c4663475c2e5c3adef46f73bcdec043";
	struct store_fixture *fixture = *state;
	AUTO(blob_writer) struct blob_writer *writer = NULL;
	auto_buf struct buf back = BUF_INIT(64);
	struct digest expected;
	struct blob_info info;
	struct err err = {0};

	check_ok(digest_parse(str_of(text), &expected, &err), &err);
	writer = begin(fixture->store);
	add(writer, STR("hello"));
	check_ok(blob_writer_commit(writer, &expected, &info, &err), &err);
	check_ok(blob_read_all(fixture->store, &expected, &back, &err), &err);
	assert_string_equal(back.ptr, "hello");
	check_ok(blob_check(fixture->store, &expected, &err), &err);
	check_ok(blob_check(fixture->store, &info.digest, &err), &err);
	assert_int_equal(count_of(fixture->store, STR("hello")), 1);
}

static void what_is_put_under_a_name_is_found_by_it(void **state)
{
	static const char hello[] =
		"sha512:9b71d224bd62f3785d96d46ad3ea3d73319bfbc2890caadae2dff72519673ca72323c3d99b"
		"a5c11d7c7acc6e14b8c5da0c4663475c2e5c3adef46f73bcdec043";
	struct store *store = ((struct store_fixture *)*state)->store;
	struct digest name;
	struct digest id;
	struct digest found;
	struct err err = {0};

	check_ok(digest_parse(str_of(hello), &name, &err), &err);
	check_err(blob_put_as(store, STR("hullo"), &name, &id, &err), &err, ERR_CORRUPT);
	assert_int_equal(blob_find_id(store, &name, &found, &err), 0);
	check_ok(blob_put(store, STR("hello"), &id, &err), &err);
	assert_int_equal(blob_find_id(store, &name, &found, &err), 0);
	check_ok(blob_put_as(store, STR("hello"), &name, &id, &err), &err);
	assert_int_equal(blob_find_id(store, &name, &found, &err), 1);
	assert_true(digest_equal(&found, &id));
	assert_int_equal(id.algorithm, DIGEST_SHA256);
}

/* Hashed on the way, so that nothing is kept of bytes that are wrong. */
static void a_sha512_that_was_asked_for_is_checked_before_the_blob_exists(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(blob_writer) struct blob_writer *right = begin(fixture->store);
	AUTO(blob_writer) struct blob_writer *wrong = begin(fixture->store);
	AUTO(hasher) struct hasher hasher = {0};
	auto_free char *bytes = noise(2 * MIB + 5, 7);
	struct digest expected;
	struct digest plain;
	struct blob_info info;
	struct err err = {0};

	hasher_init_as(&hasher, DIGEST_SHA512);
	hasher_add(&hasher, (struct str){bytes, 2 * MIB + 5});
	hasher_final(&hasher, &expected);
	digest_of(STR("other"), &plain);
	blob_writer_hash_as(wrong, DIGEST_SHA512);
	add(wrong, STR("other"));
	check_err(blob_writer_check(wrong, &expected, &err), &err, ERR_CORRUPT);
	check_err(blob_writer_commit(wrong, &expected, &info, &err), &err, ERR_CORRUPT);
	assert_int_equal(blob_find(fixture->store, &plain, &info, &err), 0);
	blob_writer_hash_as(right, DIGEST_SHA512);
	add(right, (struct str){bytes, 2 * MIB + 5});
	check_ok(blob_writer_check(right, &expected, &err), &err);
	check_ok(blob_writer_commit(right, &expected, &info, &err), &err);
	assert_int_equal(blob_find(fixture->store, &expected, &info, &err), 1);
	check_ok(blob_check(fixture->store, &expected, &err), &err);
}

static void without_a_commit_there_is_no_blob(void **state)
{
	struct store_fixture *fixture = *state;
	struct blob_writer *writer;
	struct blob_info info;
	struct digest digest;
	struct err err = {0};

	digest_of(STR("half"), &digest);
	check_ok(blob_writer_open(fixture->store, &writer, &err), &err);
	check_ok(blob_writer_add(writer, STR("half"), &err), &err);
	blob_writer_close(writer);
	assert_int_equal(blob_find(fixture->store, &digest, &info, &err), 0);
	assert_int_equal(count_of(fixture->store, STR("half")), 0);
}

/* What a collector in another process would do to a chunk without a count. */
static void damage(struct store *store, struct str chunk, const char *with)
{
	const struct store_blobs *blobs;
	AUTO(txn) MDB_txn *txn = NULL;
	struct digest id;
	MDB_val key = {32, id.bytes};
	struct err err = {0};

	digest_of(chunk, &id);
	check_ok(store_blobs(store, &blobs, &err), &err);
	check_ok(db_begin(&blobs->db, DB_WRITE, &txn, &err), &err);
	if (with)
		check_ok(db_put(&blobs->db, txn, blobs->chunks,
				(struct str){(const char *)id.bytes, 32}, str_of(with), &err),
			 &err);
	else
		assert_int_equal(mdb_del(txn, blobs->chunks, &key, NULL), 0);
	check_ok(db_commit(&blobs->db, steal_ptr(&txn), &err), &err);
}

static void a_chunk_that_vanished_before_the_commit_is_noticed(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(blob_writer) struct blob_writer *writer = NULL;
	AUTO(blob_writer) struct blob_writer *again = NULL;
	struct blob_info info;
	struct digest digest;
	struct err err = {0};

	check_ok(blob_put(fixture->store, STR("shared"), &digest, &err), &err);
	writer = begin(fixture->store);
	add(writer, STR("new"));
	add_frame(writer, "x", STR("shared"));
	again = begin(fixture->store);
	add(again, STR("shared"));
	add_frame(again, "y", STR("more"));
	check_ok(blob_writer_commit(writer, NULL, &info, &err), &err);
	damage(fixture->store, STR("shared"), NULL);
	check_err(blob_writer_commit(again, NULL, &info, &err), &err, ERR_UNAVAILABLE);
	assert_int_equal(count_of(fixture->store, STR("shared")), 2);
	assert_int_equal(count_of(fixture->store, STR("more")), 0);
}

static void a_chunk_that_is_lost_or_cut_is_named(void **state)
{
	struct store_fixture *fixture = *state;
	auto_buf struct buf bytes = BUF_INIT(64);
	char text[DIGEST_TEXT_MAX];
	struct digest digest;
	struct err err = {0};

	check_ok(blob_put(fixture->store, STR("bytes"), &digest, &err), &err);
	damage(fixture->store, STR("bytes"), "longer");
	check_err(blob_read_all(fixture->store, &digest, &bytes, &err), &err, ERR_CORRUPT);
	assert_non_null(strstr(err.text, digest_format(&digest, text)));
	assert_non_null(strstr(err.text, "another size"));
	assert_non_null(strstr(err.text, "; hearth fsck mends the store"));
	damage(fixture->store, STR("bytes"), NULL);
	check_err(blob_read_all(fixture->store, &digest, &bytes, &err), &err, ERR_CORRUPT);
	assert_non_null(strstr(err.text, "missing"));
}

struct text_sink {
	struct sink sink;
	struct buf text;
};

static int text_sink_write(struct sink *sink, struct str bytes, struct err *err)
{
	return buf_add(&container_of(sink, struct text_sink, sink)->text, bytes, err);
}

static void copy_gives_all_bytes_and_refuses_damaged_ones(void **state)
{
	struct store_fixture *fixture = *state;
	struct text_sink out = {{text_sink_write}, BUF_INIT(64)};
	struct digest digest;
	struct err err = {0};

	check_ok(blob_put(fixture->store, STR("bytes"), &digest, &err), &err);
	check_ok(blob_copy(fixture->store, &digest, &out.sink, &err), &err);
	assert_string_equal(out.text.ptr, "bytes");
	damage(fixture->store, STR("bytes"), "BYTES");
	check_err(blob_copy(fixture->store, &digest, &out.sink, &err), &err, ERR_CORRUPT);
	buf_done(&out.text);
}

static void a_check_sees_damage_and_stops_when_told(void **state)
{
	struct store_fixture *fixture = *state;
	struct cancel stop;
	struct digest digest;
	struct err err = {0};

	check_ok(cancel_init(&stop, &err), &err);
	check_ok(blob_put(fixture->store, STR("bytes"), &digest, &err), &err);
	check_ok(blob_check_digest(fixture->store, &digest, &stop, &err), &err);
	damage(fixture->store, STR("bytes"), "BYTES");
	check_err(blob_check_digest(fixture->store, &digest, &stop, &err), &err, ERR_CORRUPT);
	assert_non_null(strstr(err.text, "another digest"));
	damage(fixture->store, STR("bytes"), NULL);
	check_err(blob_check_digest(fixture->store, &digest, &stop, &err), &err, ERR_CORRUPT);
	assert_non_null(strstr(err.text, "missing"));
	cancel_raise(&stop);
	check_err(blob_check_digest(fixture->store, &digest, &stop, &err), &err, ERR_CANCELLED);
	cancel_done(&stop);
}

static void every_blob_is_seen_once(void **state)
{
	struct store_fixture *fixture = *state;
	struct err err = {0};

	for (uint32_t i = 0; i < 300; i++) {
		struct digest digest;

		check_ok(blob_put(fixture->store, (struct str){(const char *)&i, sizeof(i)},
				  &digest, &err),
			 &err);
	}
	assert_int_equal(blob_count(fixture->store), 300);
}

#define STORE_TEST(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(put_gives_back_what_it_took),
		STORE_TEST(nothing_is_a_blob_too),
		STORE_TEST(putting_twice_is_one_blob_that_counts_as_new),
		STORE_TEST(what_is_put_again_in_other_pieces_stays_as_it_was_cut),
		STORE_TEST(a_blob_that_is_not_there_is_a_miss),
		STORE_TEST(a_small_ceiling_is_a_limit),
		STORE_TEST(foreign_bytes_are_cut_every_mebibyte_whatever_the_pieces),
		STORE_TEST(blobs_share_chunks_and_count_them),
		STORE_TEST(a_long_list_of_chunks_is_paged),
		STORE_TEST(a_frame_is_known_by_codec_and_plain_bytes),
		STORE_TEST(foreign_bytes_and_frames_keep_their_order),
		STORE_TEST(an_unexpected_digest_makes_no_blob),
		STORE_TEST(a_sha512_names_the_same_blob),
		STORE_TEST(what_is_put_under_a_name_is_found_by_it),
		STORE_TEST(a_sha512_that_was_asked_for_is_checked_before_the_blob_exists),
		STORE_TEST(without_a_commit_there_is_no_blob),
		STORE_TEST(a_chunk_that_vanished_before_the_commit_is_noticed),
		STORE_TEST(a_chunk_that_is_lost_or_cut_is_named),
		STORE_TEST(copy_gives_all_bytes_and_refuses_damaged_ones),
		STORE_TEST(a_check_sees_damage_and_stops_when_told),
		STORE_TEST(every_blob_is_seen_once),
	};

	return cmocka_run_group_tests_name("layers/blob", tests, NULL, NULL);
}
