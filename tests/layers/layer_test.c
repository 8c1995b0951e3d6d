/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/cut_priv.h"
#include "layers/layer.h"
#include "tests/layers/store_fixture.h"

#include <zstd.h>

struct memory {
	struct sink sink;
	struct buf bytes;
};

static int memory_write(struct sink *sink, struct str bytes, struct err *err)
{
	struct memory *memory = container_of(sink, struct memory, sink);

	return buf_add(&memory->bytes, bytes, err);
}

#define MEMORY_MAX ((size_t)64 * 1024 * 1024)
#define MEMORY_INIT ((struct memory){{memory_write}, BUF_INIT(MEMORY_MAX)})

/* Bytes that compress somewhat and repeat nowhere. */
static char *make_bytes(size_t len, uint64_t seed)
{
	char *bytes = malloc(len + 1);

	assert_non_null(bytes);
	for (size_t i = 0; i < len; i++) {
		seed = seed * UINT64_C(6364136223846793005) + 1;
		bytes[i] = (char)('a' + (seed >> 60));
	}
	return bytes;
}

static struct layer_info write_layer_as(struct store *store, enum layer_codec codec, struct str tar,
					size_t piece)
{
	AUTO(layer_writer) struct layer_writer *writer = NULL;
	struct layer_info info;
	struct err err = {0};

	check_ok(layer_writer_open(store, codec, &writer, &err), &err);
	for (size_t at = 0; at < tar.len; at += piece) {
		struct str bytes = {tar.ptr + at, tar.len - at < piece ? tar.len - at : piece};
		struct sink *sink = layer_writer_sink(writer);

		check_ok(sink->write(sink, bytes, &err), &err);
	}
	check_ok(layer_writer_finish(writer, &info, &err), &err);
	return info;
}

static struct layer_info write_layer(struct store *store, struct str tar, size_t piece)
{
	return write_layer_as(store, LAYER_ZSTD, tar, piece);
}

static void check_read_back(struct store *store, enum layer_codec codec, struct str tar)
{
	struct memory back = MEMORY_INIT;
	struct layer_info info = write_layer_as(store, codec, tar, 10007);
	struct digest digest;
	struct err err = {0};

	digest_of(tar, &digest);
	assert_true(digest_equal(&digest, &info.diff_id));
	assert_int_equal(info.tar_size, tar.len);
	assert_true(info.blob_size > 0); /* no bytes are a stream, too */
	check_ok(layer_read(store, &info.blob, UINT64_MAX, &back.sink, &err), &err);
	assert_int_equal(back.bytes.len, tar.len);
	if (tar.len > 0)
		assert_memory_equal(back.bytes.ptr, tar.ptr, tar.len);
	buf_done(&back.bytes);
}

static void a_layer_is_read_back_whatever_its_size(void **state)
{
	static const size_t sizes[] = {0,
				       1,
				       LAYER_CUT_MIN,
				       LAYER_CUT_NORMAL + 1,
				       LAYER_CUT_MAX,
				       LAYER_CUT_MAX + 1,
				       2 * LAYER_CUT_MAX,
				       (size_t)5 * 1024 * 1024 + 3};
	struct store_fixture *fixture = *state;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		auto_free char *bytes = make_bytes(sizes[i], i + 1);

		for (int codec = 0; codec < LAYER_CODECS; codec++)
			check_read_back(fixture->store, codec, (struct str){bytes, sizes[i]});
	}
}

static void a_layer_is_one_stream_for_any_zstd(void **state)
{
	struct store_fixture *fixture = *state;
	const size_t len = (size_t)3 * 1024 * 1024;
	auto_free char *bytes = make_bytes(len, 9);
	auto_free char *plain = malloc(len + 1);
	struct memory blob = MEMORY_INIT;
	struct layer_info info = write_layer(fixture->store, (struct str){bytes, len}, len);
	struct err err = {0};

	check_ok(blob_copy(fixture->store, &info.blob, &blob.sink, &err), &err);
	assert_int_equal(blob.bytes.len, info.blob_size);
	/* The simple interface inflates frames one after another. */
	assert_int_equal(ZSTD_decompress(plain, len + 1, blob.bytes.ptr, blob.bytes.len), len);
	assert_memory_equal(plain, bytes, len);
	buf_done(&blob.bytes);
}

/* As a reader sees it that is not ours: the whole, from its first byte. */
static void a_layer_is_one_stream_for_any_gzip(void **state)
{
	struct store_fixture *fixture = *state;
	const size_t len = (size_t)3 * 1024 * 1024;
	auto_free char *bytes = make_bytes(len, 9);
	struct memory blob = MEMORY_INIT;
	struct memory plain = MEMORY_INIT;
	struct layer_info info =
		write_layer_as(fixture->store, LAYER_GZIP, (struct str){bytes, len}, len);
	AUTO(inflater) struct inflater *inflater = NULL;
	struct err err = {0};

	check_ok(blob_copy(fixture->store, &info.blob, &blob.sink, &err), &err);
	assert_int_equal(blob.bytes.len, info.blob_size);
	assert_memory_equal(blob.bytes.ptr, "\x1f\x8b\x08\0\0\0\0\0\0\xff", 10);
	check_ok(inflater_open(&plain.sink, len, &inflater, &err), &err);
	check_ok(inflater_write(inflater, buf_str(&blob.bytes), &err), &err);
	check_ok(inflater_finish(inflater, &err), &err);
	assert_int_equal(plain.bytes.len, len);
	assert_memory_equal(plain.bytes.ptr, bytes, len);
	buf_done(&blob.bytes);
	buf_done(&plain.bytes);
}

static void the_same_tar_twice_costs_nothing(void **state)
{
	struct store_fixture *fixture = *state;
	const size_t len = (size_t)4 * 1024 * 1024;
	auto_free char *bytes = make_bytes(len, 5);
	struct str tar = {bytes, len};

	for (int codec = 0; codec < LAYER_CODECS; codec++) {
		struct layer_info first = write_layer_as(fixture->store, codec, tar, 4096);
		struct layer_info second = write_layer_as(fixture->store, codec, tar, 65536);

		assert_int_equal(first.new_bytes, first.blob_size);
		assert_int_equal(second.new_bytes, 0);
		assert_true(digest_equal(&first.blob, &second.blob));
	}
}

static void a_small_change_costs_a_few_chunks(void **state)
{
	struct store_fixture *fixture = *state;
	const size_t len = (size_t)8 * 1024 * 1024;
	auto_free char *bytes = make_bytes(len + 1, 6);
	struct layer_info first = write_layer(fixture->store, (struct str){bytes, len}, 4096);
	struct layer_info second;

	/* One byte more in the middle moves everything behind it. */
	memmove(bytes + len / 2 + 1, bytes + len / 2, len / 2);
	bytes[len / 2] = '!';
	second = write_layer(fixture->store, (struct str){bytes, len + 1}, 4096);
	assert_true(second.new_bytes > 0);
	assert_true(second.new_bytes < first.blob_size / 10);
}

static struct layer_info write_in_two(struct store *store, struct str header, struct str data)
{
	AUTO(layer_writer) struct layer_writer *writer = NULL;
	struct layer_info info;
	struct sink *sink;
	struct err err = {0};

	check_ok(layer_writer_open(store, LAYER_ZSTD, &writer, &err), &err);
	sink = layer_writer_sink(writer);
	check_ok(sink->write(sink, header, &err), &err);
	check_ok(layer_writer_cut(writer, &err), &err);
	check_ok(sink->write(sink, data, &err), &err);
	check_ok(layer_writer_finish(writer, &info, &err), &err);
	return info;
}

static void a_cut_that_is_asked_for_separates_what_is_before_and_behind(void **state)
{
	struct store_fixture *fixture = *state;
	const size_t len = (size_t)1024 * 1024;
	auto_free char *file = make_bytes(len, 7);
	struct str data = {file, len};
	struct layer_info first = write_in_two(fixture->store, STR("a header"), data);
	struct layer_info second = write_in_two(fixture->store, STR("another header"), data);

	assert_true(first.new_bytes > len / 4);
	assert_true(second.new_bytes < 100); /* the header's chunk alone */
}

static void cuts_keep_to_their_bounds_and_to_these_places(void **state)
{
	static const size_t expected[] = {65631, 66870, 74515, 75111, 86366, 84666, 65901, 55607};
	const size_t len = (size_t)2 * 1024 * 1024;
	auto_free char *bytes = make_bytes(len, 1);
	struct cutter cutter;
	size_t at = 0;

	(void)state;
	cutter_init(&cutter);
	for (size_t i = 0; at < len; i++) {
		size_t n = cutter_find(&cutter, (struct str){bytes + at, len - at});

		assert_true(n <= LAYER_CUT_MAX);
		assert_true(n > LAYER_CUT_MIN || at + n == len);
		if (i < sizeof(expected) / sizeof(expected[0]))
			assert_int_equal(n, expected[i]);
		at += n;
	}
	assert_int_equal(at, len);
}

static void a_layer_above_the_ceiling_is_refused_while_it_is_read(void **state)
{
	struct store_fixture *fixture = *state;
	const size_t len = (size_t)1024 * 1024;
	auto_free char *bytes = make_bytes(len, 8);
	struct layer_info info = write_layer(fixture->store, (struct str){bytes, len}, len);
	struct memory back = MEMORY_INIT;
	struct err err = {0};

	check_err(layer_read(fixture->store, &info.blob, len - 1, &back.sink, &err), &err,
		  ERR_LIMIT);
	buf_done(&back.bytes);
}

static void a_writer_that_is_closed_early_leaves_no_blob(void **state)
{
	struct store_fixture *fixture = *state;
	const size_t len = (size_t)4 * 1024 * 1024;
	auto_free char *bytes = make_bytes(len, 10);
	struct layer_writer *writer = NULL;
	struct layer_info info;
	struct blob_info found;
	struct sink *sink;
	struct err err = {0};

	check_ok(layer_writer_open(fixture->store, LAYER_ZSTD, &writer, &err), &err);
	sink = layer_writer_sink(writer);
	check_ok(sink->write(sink, (struct str){bytes, len}, &err), &err);
	layer_writer_close(writer);
	info = write_layer(fixture->store, STR("something else"), 5);
	assert_int_equal(blob_find(fixture->store, &info.blob, &found, &err), 1);
	assert_int_equal(info.new_bytes, info.blob_size);
}

static int refusing_write(struct sink *sink, struct str bytes, struct err *err)
{
	(void)sink;
	(void)bytes;
	return err_set(err, ERR_BUSY, "no more, please");
}

static void a_reader_stops_when_its_sink_does(void **state)
{
	struct store_fixture *fixture = *state;
	const size_t len = (size_t)4 * 1024 * 1024;
	auto_free char *bytes = make_bytes(len, 11);
	struct layer_info info = write_layer(fixture->store, (struct str){bytes, len}, len);
	struct sink refusing = {refusing_write};
	struct err err = {0};

	check_err(layer_read(fixture->store, &info.blob, UINT64_MAX, &refusing, &err), &err,
		  ERR_BUSY);
}

/* A blob of frames, of which number `bad` says more than it holds. */
static struct digest write_frames(struct store *store, size_t count, size_t bad)
{
	AUTO(blob_writer) struct blob_writer *writer = NULL;
	struct blob_info info;
	struct err err = {0};

	check_ok(blob_writer_open(store, &writer, &err), &err);
	for (size_t i = 0; i < count; i++) {
		char text[32];
		char frame[128];
		struct str plain = {text, (size_t)snprintf(text, sizeof(text), "frame %zu", i)};
		size_t n = ZSTD_compress(frame, sizeof(frame), plain.ptr, plain.len, 1);
		const struct fingerprint_key key = {{0}};
		struct fingerprint print;

		assert_false(ZSTD_isError(n));
		fingerprint_of(&key, plain, &print);
		check_ok(blob_writer_add_frame(writer, "test", &print,
					       (uint32_t)plain.len + (i == bad),
					       (struct str){frame, n}, &err),
			 &err);
	}
	check_ok(blob_writer_commit(writer, NULL, &info, &err), &err);
	return info.digest;
}

static void a_frame_that_is_not_what_was_stored_is_corrupt(void **state)
{
	static const size_t counts[] = {1, 100};
	struct store_fixture *fixture = *state;

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct digest good = write_frames(fixture->store, counts[i], counts[i]);
		struct digest bad = write_frames(fixture->store, counts[i] + 1, counts[i]);
		struct memory back = MEMORY_INIT;
		struct err err = {0};

		check_ok(layer_read(fixture->store, &good, UINT64_MAX, &back.sink, &err), &err);
		check_err(layer_read(fixture->store, &bad, UINT64_MAX, &back.sink, &err), &err,
			  ERR_CORRUPT);
		buf_done(&back.bytes);
	}
}

static int write_noise(struct store *store, size_t len, struct err *err)
{
	AUTO(layer_writer) struct layer_writer *writer = NULL;
	struct layer_info info;
	char noise[4096];
	uint64_t seed = 12;

	if (layer_writer_open(store, LAYER_ZSTD, &writer, err) < 0)
		return -1;
	for (size_t at = 0; at < len; at += sizeof(noise)) {
		struct sink *sink = layer_writer_sink(writer);

		for (size_t i = 0; i < sizeof(noise); i++) {
			seed = seed * UINT64_C(6364136223846793005) + 1;
			noise[i] = (char)(seed >> 56);
		}
		if (sink->write(sink, (struct str){noise, sizeof(noise)}, err) < 0)
			return -1;
	}
	return layer_writer_finish(writer, &info, err);
}

static void a_full_store_ends_a_layer_with_its_reason(void **state)
{
	struct store_fixture *fixture = *state;
	struct store_options options = {
		.path = fixture->path, .map_bytes = (uint64_t)16 * 1024 * 1024, .create = true};
	struct err err = {0};

	store_close(fixture->store);
	fixture->store = NULL;
	check_ok(store_open(&options, &fixture->store, &err), &err);
	check_err(write_noise(fixture->store, (size_t)64 * 1024 * 1024, &err), &err, ERR_FULL);
	err = (struct err){0};
	/* The batches before may have left room, or none: but no other reason. */
	if (write_noise(fixture->store, 4096, &err) < 0)
		assert_int_equal(err.kind, ERR_FULL);
}

#define STORE_TEST(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(a_layer_is_read_back_whatever_its_size),
		STORE_TEST(a_layer_is_one_stream_for_any_zstd),
		STORE_TEST(a_layer_is_one_stream_for_any_gzip),
		STORE_TEST(the_same_tar_twice_costs_nothing),
		STORE_TEST(a_small_change_costs_a_few_chunks),
		STORE_TEST(a_cut_that_is_asked_for_separates_what_is_before_and_behind),
		cmocka_unit_test(cuts_keep_to_their_bounds_and_to_these_places),
		STORE_TEST(a_layer_above_the_ceiling_is_refused_while_it_is_read),
		STORE_TEST(a_reader_stops_when_its_sink_does),
		STORE_TEST(a_frame_that_is_not_what_was_stored_is_corrupt),
		STORE_TEST(a_full_store_ends_a_layer_with_its_reason),
		STORE_TEST(a_writer_that_is_closed_early_leaves_no_blob),
	};

	return cmocka_run_group_tests_name("layers/layer", tests, NULL, NULL);
}
