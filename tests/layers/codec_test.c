/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/codec_priv.h"
#include "layers/layer.h"
#include "tests/check.h"

static const struct codec *const codecs[] = {&codec_zstd, &codec_gzip};

#define CODECS (sizeof(codecs) / sizeof(codecs[0]))

/* Bytes of which nobody makes fewer. */
static void make_noise(char *bytes, size_t len)
{
	uint64_t seed = 1;

	for (size_t i = 0; i < len; i++) {
		seed = seed * UINT64_C(6364136223846793005) + 1;
		bytes[i] = (char)(seed >> 56);
	}
}

static void make_text(char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (char)('a' + (i * i / 7 + i / 1000) % 26);
}

/* A frame in memory of its own, so that a sanitizer sees what is read behind it. */
struct frame {
	char *bytes; /* owned */
	size_t len;
};

static struct frame compress(const struct codec *codec, struct codec_context *context,
			     struct str plain)
{
	size_t room = codec->bound(plain.len);
	struct frame frame = {malloc(room), 0};
	struct err err = {0};

	assert_non_null(frame.bytes);
	check_ok(codec->compress(context, plain, frame.bytes, room, &frame.len, &err), &err);
	assert_in_range(frame.len, 1, room);
	return frame;
}

static void check_round(const struct codec *codec, struct str plain)
{
	struct codec_context *context = codec->open();
	struct frame frame = compress(codec, context, plain);
	auto_free char *back = malloc(plain.len + 1);
	struct err err = {0};

	check_ok(codec->inflate(context, (struct str){frame.bytes, frame.len}, back, plain.len,
				&err),
		 &err);
	assert_memory_equal(back, plain.ptr, plain.len);
	free(frame.bytes);
	codec->close(context);
}

static void a_frame_is_inflated_to_what_it_was_made_of(void **state)
{
	static const size_t sizes[] = {0, 1, 511, 512, 65535, 65536, LAYER_CUT_MAX};
	auto_free char *noise = malloc(LAYER_CUT_MAX);
	auto_free char *text = malloc(LAYER_CUT_MAX);

	(void)state;
	make_noise(noise, LAYER_CUT_MAX);
	make_text(text, LAYER_CUT_MAX);
	for (size_t i = 0; i < CODECS * (sizeof(sizes) / sizeof(sizes[0])); i++) {
		check_round(codecs[i % CODECS], (struct str){noise, sizes[i / CODECS]});
		check_round(codecs[i % CODECS], (struct str){text, sizes[i / CODECS]});
	}
}

static void check_refused(const struct codec *codec, struct str frame, size_t plain_len)
{
	struct codec_context *context = codec->open();
	auto_free char *exact = malloc(frame.len + 1);
	auto_free char *back = malloc(plain_len + 1);
	struct err err = {0};

	memcpy(exact, frame.ptr, frame.len);
	check_err(codec->inflate(context, (struct str){exact, frame.len}, back, plain_len, &err),
		  &err, ERR_CORRUPT);
	codec->close(context);
}

static void what_is_no_frame_of_that_many_bytes_is_corrupt(void **state)
{
	char text[3000];

	(void)state;
	make_text(text, sizeof(text));
	for (size_t i = 0; i < CODECS; i++) {
		struct codec_context *context = codecs[i]->open();
		struct frame frame = compress(codecs[i], context, (struct str){text, sizeof(text)});
		struct str bytes = {frame.bytes, frame.len};

		check_refused(codecs[i], bytes, sizeof(text) - 1);
		check_refused(codecs[i], bytes, sizeof(text) + 1);
		check_refused(codecs[1 - i], bytes, sizeof(text));
		for (size_t len = 0; len < frame.len; len++)
			check_refused(codecs[i], (struct str){frame.bytes, len}, sizeof(text));
		free(frame.bytes);
		codecs[i]->close(context);
	}
}

static void bytes_behind_a_frame_or_other_ones_in_it_are_corrupt(void **state)
{
	char text[3000];

	(void)state;
	make_text(text, sizeof(text));
	for (size_t i = 0; i < CODECS; i++) {
		struct codec_context *context = codecs[i]->open();
		struct frame frame = compress(codecs[i], context, (struct str){text, sizeof(text)});
		auto_free char *longer = malloc(frame.len + 1);

		memcpy(longer, frame.bytes, frame.len);
		longer[frame.len] = '\0';
		check_refused(codecs[i], (struct str){longer, frame.len + 1}, sizeof(text));
		longer[0] ^= 1;
		check_refused(codecs[i], (struct str){longer, frame.len}, sizeof(text));
		free(frame.bytes);
		codecs[i]->close(context);
	}
}

/* A member's own sum tells what its deflate cannot. */
static void a_changed_sum_or_length_of_a_member_is_corrupt(void **state)
{
	struct codec_context *context = codec_gzip.open();
	struct frame frame = compress(&codec_gzip, context, STR("abc"));

	(void)state;
	for (size_t behind = 1; behind <= 8; behind++) {
		frame.bytes[frame.len - behind] ^= 1;
		check_refused(&codec_gzip, (struct str){frame.bytes, frame.len}, 3);
		frame.bytes[frame.len - behind] ^= 1;
	}
	free(frame.bytes);
	codec_gzip.close(context);
}

static void a_frame_does_not_depend_on_those_before_it(void **state)
{
	auto_free char *text = malloc(LAYER_CUT_MAX);

	(void)state;
	make_text(text, LAYER_CUT_MAX);
	for (size_t i = 0; i < CODECS; i++) {
		struct codec_context *fresh = codecs[i]->open();
		struct codec_context *used = codecs[i]->open();
		struct str plain = {text + 1000, 70000};
		struct frame before = compress(codecs[i], used, (struct str){text, LAYER_CUT_MAX});
		struct frame one = compress(codecs[i], fresh, plain);
		struct frame other = compress(codecs[i], used, plain);

		assert_int_equal(one.len, other.len);
		assert_memory_equal(one.bytes, other.bytes, one.len);
		free(before.bytes);
		free(one.bytes);
		free(other.bytes);
		codecs[i]->close(fresh);
		codecs[i]->close(used);
	}
}

/* Layers of one tar have one digest on every machine, whatever its processor can. */
static void a_member_has_these_bytes_on_every_processor(void **state)
{
	struct codec_context *context = codec_gzip.open();
	auto_free char *text = malloc(LAYER_CUT_MAX);
	char hex[DIGEST_HEX_MAX];
	struct digest digest;
	struct frame frame;

	(void)state;
	make_text(text, LAYER_CUT_MAX);
	frame = compress(&codec_gzip, context, (struct str){text, LAYER_CUT_MAX});
	digest_of((struct str){frame.bytes, frame.len}, &digest);
	assert_string_equal(digest_hex(&digest, hex),
			    "697c8faf9facfbf0f69e83dbec6b0f2fc39937400cbbbeae87fe2d9dc38e5e05");
	free(frame.bytes);
	codec_gzip.close(context);
}

static void a_name_tells_codec_version_and_level(void **state)
{
	char zstd[CODEC_NAME_MAX];
	char gzip[CODEC_NAME_MAX];

	(void)state;
	codec_zstd.name(zstd);
	codec_gzip.name(gzip);
	assert_true(str_starts(str_of(zstd), STR("zstd-1.")));
	assert_true(str_starts(str_of(gzip), STR("gzip-isal2.")));
}

static void codecs_are_asked_for_by_name(void **state)
{
	enum layer_codec codec = LAYER_ZSTD;
	struct err err = {0};

	(void)state;
	check_ok(layer_codec_parse(STR("gzip"), &codec, &err), &err);
	assert_int_equal(codec, LAYER_GZIP);
	assert_string_equal(layer_codec_name(codec), "gzip");
	check_ok(layer_codec_parse(STR("zstd"), &codec, &err), &err);
	assert_int_equal(codec, LAYER_ZSTD);
	check_err(layer_codec_parse(STR("xz"), &codec, &err), &err, ERR_INVALID);
	assert_string_equal(err.text, "\"xz\": expected zstd or gzip");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_frame_is_inflated_to_what_it_was_made_of),
		cmocka_unit_test(what_is_no_frame_of_that_many_bytes_is_corrupt),
		cmocka_unit_test(bytes_behind_a_frame_or_other_ones_in_it_are_corrupt),
		cmocka_unit_test(a_changed_sum_or_length_of_a_member_is_corrupt),
		cmocka_unit_test(a_frame_does_not_depend_on_those_before_it),
		cmocka_unit_test(a_member_has_these_bytes_on_every_processor),
		cmocka_unit_test(a_name_tells_codec_version_and_level),
		cmocka_unit_test(codecs_are_asked_for_by_name),
	};

	return cmocka_run_group_tests_name("layers/codec", tests, NULL, NULL);
}
