/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/layer.h"
#include "tests/check.h"
#include "tests/layers/packing.h"

#include <string.h>

#define PACKED_MAX ((size_t)8 * 1024 * 1024)

struct memory {
	struct sink sink;
	struct buf bytes;
};

static int memory_write(struct sink *sink, struct str bytes, struct err *err)
{
	struct memory *memory = container_of(sink, struct memory, sink);

	return buf_add(&memory->bytes, bytes, err);
}

/* Inflate in pieces of one size; the caller frees out's bytes. */
static int inflate(struct str packed, size_t piece, uint64_t max, struct memory *out,
		   struct err *err)
{
	AUTO(inflater) struct inflater *inflater = NULL;

	*out = (struct memory){{memory_write}, BUF_INIT(PACKED_MAX)};
	if (inflater_open(&out->sink, max, &inflater, err) < 0)
		return -1;
	for (size_t at = 0; at < packed.len; at += piece) {
		struct str bytes = {packed.ptr + at,
				    packed.len - at < piece ? packed.len - at : piece};

		if (inflater_write(inflater, bytes, err) < 0)
			return -1;
	}
	return inflater_finish(inflater, err);
}

static void make_plain(char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (char)(i % 251 ^ i / 1000);
}

static void check_inflates(struct str packed, struct str plain)
{
	static const size_t pieces[] = {1, 2, 3, 7, 4096, 1 << 20};

	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		struct memory out;
		struct err err = {0};

		check_ok(inflate(packed, pieces[i], UINT64_MAX, &out, &err), &err);
		assert_int_equal(out.bytes.len, plain.len);
		if (plain.len > 0)
			assert_memory_equal(out.bytes.ptr, plain.ptr, plain.len);
		buf_done(&out.bytes);
	}
}

typedef void pack_fn(struct buf *out, struct str plain);
static pack_fn *const packs[] = {pack_gzip, pack_zstd};

static void every_format_is_told_by_its_bytes(void **state)
{
	char plain[20000];

	(void)state;
	make_plain(plain, sizeof(plain));
	check_inflates((struct str){plain, sizeof(plain)}, (struct str){plain, sizeof(plain)});
	check_inflates(STR("abc"), STR("abc"));
	check_inflates(STR(""), STR(""));
	for (size_t i = 0; i < 2; i++) {
		auto_buf struct buf packed = BUF_INIT(PACKED_MAX);

		packs[i](&packed, (struct str){plain, sizeof(plain)});
		check_inflates(buf_str(&packed), (struct str){plain, sizeof(plain)});
	}
}

static void streams_one_after_another_are_one(void **state)
{
	char plain[30000];

	(void)state;
	make_plain(plain, sizeof(plain));
	for (size_t i = 0; i < 2; i++) {
		auto_buf struct buf packed = BUF_INIT(PACKED_MAX);

		for (size_t part = 0; part < 3; part++)
			packs[i](&packed, (struct str){plain + 10000 * part, 10000});
		packs[i](&packed, STR(""));
		check_inflates(buf_str(&packed), (struct str){plain, sizeof(plain)});
	}
}

static void a_gzip_header_may_have_every_field_and_come_in_pieces(void **state)
{
	auto_buf struct buf packed = BUF_INIT(PACKED_MAX);

	(void)state;
	pack_gzip_full_header(&packed, STR("first"));
	pack_gzip(&packed, STR("second"));
	pack_gzip_full_header(&packed, STR("third"));
	check_inflates(buf_str(&packed), STR("firstsecondthird"));
}

static void unknown_flags_in_a_gzip_header_are_corrupt(void **state)
{
	auto_buf struct buf packed = BUF_INIT(PACKED_MAX);
	struct memory out;
	struct err err = {0};

	(void)state;
	pack_gzip(&packed, STR("text"));
	packed.ptr[3] |= 0x20;
	check_err(inflate(buf_str(&packed), 64, UINT64_MAX, &out, &err), &err, ERR_CORRUPT);
	buf_done(&out.bytes);
}

static void check_ignored(pack_fn *pack, const char *trailer)
{
	auto_buf struct buf packed = BUF_INIT(PACKED_MAX);
	char plain[1000];
	char zeros[1024] = {0};
	struct err err = {0};

	make_plain(plain, sizeof(plain));
	pack(&packed, (struct str){plain, sizeof(plain)});
	check_ok(buf_add(&packed, str_of(trailer), &err), &err);
	check_inflates(buf_str(&packed), (struct str){plain, sizeof(plain)});
	check_ok(buf_add(&packed, (struct str){zeros, sizeof(zeros)}, &err), &err);
	check_inflates(buf_str(&packed), (struct str){plain, sizeof(plain)});
}

static void what_follows_the_last_stream_is_ignored(void **state)
{
	/* The last is how a frame of zstd 0.5 begins, which its library still reads. */
	static const char *const trailers[] = {
		"",         "x",    "\x1f",         "\x1f\x8b",
		"\x28\xb5", "1234", "garbage here", "\x25\xb5\x2f\xfd\x04XM\x10\x10\x61"};

	(void)state;
	for (size_t t = 0; t < sizeof(trailers) / sizeof(trailers[0]); t++) {
		check_ignored(pack_gzip, trailers[t]);
		check_ignored(pack_zstd, trailers[t]);
	}
}

static void what_is_ignored_is_counted(void **state)
{
	static const char *const trailers[] = {
		"", "x", "\x1f", "\x1f\x8b", "\x28\xb5", "1234", "more than any header of zstd"};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(trailers) / sizeof(trailers[0]); i++) {
		auto_buf struct buf packed = BUF_INIT(PACKED_MAX);
		AUTO(inflater) struct inflater *inflater = NULL;
		struct memory out = {.sink = {memory_write}, .bytes = BUF_INIT(100)};
		struct err err = {0};

		packs[i % 2](&packed, STR("plain"));
		check_ok(buf_add(&packed, str_of(trailers[i / 2]), &err), &err);
		check_ok(inflater_open(&out.sink, 100, &inflater, &err), &err);
		for (size_t at = 0; at < packed.len; at++)
			check_ok(inflater_write(inflater, (struct str){packed.ptr + at, 1}, &err),
				 &err);
		check_ok(inflater_finish(inflater, &err), &err);
		assert_int_equal(inflater_behind(inflater), strlen(trailers[i / 2]));
		buf_done(&out.bytes);
	}
}

static void skippable_frames_are_skipped(void **state)
{
	auto_buf struct buf packed = BUF_INIT(PACKED_MAX);
	struct str skippable = STR("\x5e\x2a\x4d\x18\x03\x00\x00\x00xyz");
	struct err err = {0};

	(void)state;
	check_ok(buf_add(&packed, skippable, &err), &err);
	pack_zstd(&packed, STR("first"));
	check_ok(buf_add(&packed, skippable, &err), &err);
	pack_zstd(&packed, STR("second"));
	check_ok(buf_add(&packed, skippable, &err), &err);
	check_inflates(buf_str(&packed), STR("firstsecond"));
}

static void a_stream_cut_off_anywhere_is_corrupt(void **state)
{
	char plain[3000];

	(void)state;
	make_plain(plain, sizeof(plain));
	for (size_t i = 0; i < 2; i++) {
		auto_buf struct buf packed = BUF_INIT(PACKED_MAX);

		packs[i](&packed, (struct str){plain, sizeof(plain)});
		for (size_t len = 4; len < packed.len; len++) {
			struct memory out;
			struct err err = {0};

			check_err(
				inflate((struct str){packed.ptr, len}, 64, UINT64_MAX, &out, &err),
				&err, ERR_CORRUPT);
			buf_done(&out.bytes);
		}
	}
}

static void a_flipped_bit_is_corrupt_or_harmless(void **state)
{
	char plain[3000];

	(void)state;
	make_plain(plain, sizeof(plain));
	for (size_t at = 10; at < 200; at++) {
		auto_buf struct buf packed = BUF_INIT(PACKED_MAX);
		struct memory out;
		struct err err = {0};

		pack_gzip(&packed, (struct str){plain, sizeof(plain)});
		packed.ptr[at] ^= 0x10;
		if (inflate(buf_str(&packed), 64, UINT64_MAX, &out, &err) == 0)
			assert_memory_equal(out.bytes.ptr, plain, sizeof(plain));
		else
			assert_int_equal(err.kind, ERR_CORRUPT);
		buf_done(&out.bytes);
	}
}

static void a_bomb_ends_at_the_ceiling(void **state)
{
	const size_t len = (size_t)4 * 1024 * 1024;
	auto_free char *zeros = calloc(1, len);

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		auto_buf struct buf packed = BUF_INIT(PACKED_MAX);
		struct memory out;
		struct err err = {0};

		packs[i](&packed, (struct str){zeros, len});
		assert_true(packed.len < len / 100);
		check_err(inflate(buf_str(&packed), 4096, len / 2, &out, &err), &err, ERR_LIMIT);
		assert_true(out.bytes.len <= len / 2);
		buf_done(&out.bytes);
	}
}

static void a_window_of_more_than_128_mib_is_refused(void **state)
{
	/* Frame header: no single segment, window descriptor 2^28, then a raw last block. */
	static const struct str huge[] = {STR("\x28\xb5\x2f\xfd\x00\x90\x09\x00\x00x"),
					  /* and 2^27 and an eighth of it */
					  STR("\x28\xb5\x2f\xfd\x00\x89\x09\x00\x00x")};

	(void)state;
	for (size_t i = 0; i < sizeof(huge) / sizeof(huge[0]); i++) {
		struct memory out;
		struct err err = {0};

		check_err(inflate(huge[i], 64, UINT64_MAX, &out, &err), &err, ERR_LIMIT);
		buf_done(&out.bytes);
	}
}

static void every_window_of_up_to_128_mib_is_read(void **state)
{
	char plain[30000];

	(void)state;
	make_plain(plain, sizeof(plain));
	for (int log = 10; log <= 27; log++) {
		auto_buf struct buf packed = BUF_INIT(PACKED_MAX);
		struct memory out;
		struct err err = {0};

		pack_zstd_window(&packed, (struct str){plain, sizeof(plain)}, log);
		assert_int_equal((unsigned char)packed.ptr[5], (log - 10) << 3); /* it says so */
		check_ok(inflate(buf_str(&packed), 1000, UINT64_MAX, &out, &err), &err);
		assert_int_equal(out.bytes.len, sizeof(plain));
		assert_memory_equal(out.bytes.ptr, plain, sizeof(plain));
		buf_done(&out.bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_format_is_told_by_its_bytes),
		cmocka_unit_test(streams_one_after_another_are_one),
		cmocka_unit_test(a_gzip_header_may_have_every_field_and_come_in_pieces),
		cmocka_unit_test(unknown_flags_in_a_gzip_header_are_corrupt),
		cmocka_unit_test(what_follows_the_last_stream_is_ignored),
		cmocka_unit_test(what_is_ignored_is_counted),
		cmocka_unit_test(skippable_frames_are_skipped),
		cmocka_unit_test(a_stream_cut_off_anywhere_is_corrupt),
		cmocka_unit_test(a_flipped_bit_is_corrupt_or_harmless),
		cmocka_unit_test(a_bomb_ends_at_the_ceiling),
		cmocka_unit_test(a_window_of_more_than_128_mib_is_refused),
		cmocka_unit_test(every_window_of_up_to_128_mib_is_read),
	};

	return cmocka_run_group_tests_name("layers/inflater", tests, NULL, NULL);
}
