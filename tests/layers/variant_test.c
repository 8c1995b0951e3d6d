/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/layer.h"
#include "layers/variant.h"
#include "tests/layers/packing.h"
#include "tests/layers/store_fixture.h"

#define TAR_LEN ((size_t)1500 * 1000)
#define PACKED_MAX ((size_t)8 * 1024 * 1024)

static void make_tar(char *bytes)
{
	uint64_t seed = 3;

	for (size_t i = 0; i < TAR_LEN; i++) {
		seed = seed * UINT64_C(6364136223846793005) + 1;
		bytes[i] = (char)('a' + (seed >> 60));
	}
}

/* Cut where a file's data would start, too. */
static struct layer_info write_layer(struct store *store, enum layer_codec codec, const char *bytes)
{
	AUTO(layer_writer) struct layer_writer *writer = NULL;
	struct layer_info info;
	struct sink *sink;
	struct err err = {0};

	check_ok(layer_writer_open(store, codec, &writer, &err), &err);
	sink = layer_writer_sink(writer);
	check_ok(sink->write(sink, (struct str){bytes, 700001}, &err), &err);
	check_ok(layer_writer_cut(writer, &err), &err);
	check_ok(sink->write(sink, (struct str){bytes + 700001, TAR_LEN - 700001}, &err), &err);
	check_ok(layer_writer_finish(writer, &info, &err), &err);
	return info;
}

static struct variant_source source_of(const struct layer_info *info)
{
	return (struct variant_source){.blob = info->blob,
				       .diff_id = info->diff_id,
				       .size = info->blob_size,
				       .max_bytes = UINT64_MAX};
}

static int find(struct store *store, const struct digest *diff_id, enum layer_codec codec,
		struct variant *out)
{
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};
	int found;

	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	found = variant_find(store, meta, diff_id, codec, out, &err);
	check_ok(found, &err);
	return found;
}

static void a_variant_is_the_blob_that_is_made_directly(void **state)
{
	struct store_fixture *fixture = *state;
	auto_free char *tar = malloc(TAR_LEN);

	make_tar(tar);
	for (int codec = 0; codec < LAYER_CODECS; codec++) {
		enum layer_codec other = codec == LAYER_ZSTD ? LAYER_GZIP : LAYER_ZSTD;
		struct layer_info from = write_layer(fixture->store, other, tar);
		struct variant_source source = source_of(&from);
		struct variant made;
		struct layer_info direct;
		struct err err = {0};

		check_ok(variant_make(fixture->store, &source, codec, &made, &err), &err);
		direct = write_layer(fixture->store, codec, tar);
		assert_true(digest_equal(&made.blob, &direct.blob));
		assert_int_equal(made.size, direct.blob_size);
		assert_int_equal(direct.new_bytes, 0);
		assert_true(digest_equal(&direct.diff_id, &from.diff_id));
	}
}

static void a_variant_is_remembered(void **state)
{
	struct store_fixture *fixture = *state;
	auto_free char *tar = malloc(TAR_LEN);
	struct layer_info info;
	struct variant_source source;
	struct variant made;
	struct variant found;
	struct err err = {0};

	make_tar(tar);
	info = write_layer(fixture->store, LAYER_ZSTD, tar);
	source = source_of(&info);
	assert_int_equal(find(fixture->store, &info.diff_id, LAYER_GZIP, &found), 0);
	check_ok(variant_make(fixture->store, &source, LAYER_GZIP, &made, &err), &err);
	(void)store_fixture_reopen(fixture, false);
	assert_int_equal(find(fixture->store, &info.diff_id, LAYER_GZIP, &found), 1);
	assert_true(digest_equal(&found.blob, &made.blob));
	assert_int_equal(found.size, made.size);
	assert_int_equal(find(fixture->store, &info.diff_id, LAYER_ZSTD, &found), 0);
}

static void a_record_without_its_blob_is_a_miss(void **state)
{
	struct store_fixture *fixture = *state;
	struct meta *meta;
	struct variant gone = {.size = 1};
	struct digest diff_id;
	struct err err = {0};

	digest_of(STR("tar"), &diff_id);
	digest_of(STR("collected"), &gone.blob);
	check_ok(meta_begin(fixture->store, META_WRITE, &meta, &err), &err);
	check_ok(variant_put(meta, &diff_id, LAYER_GZIP, &gone, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
	assert_int_equal(find(fixture->store, &diff_id, LAYER_GZIP, &gone), 0);
}

/* Store what somebody else compressed. */
static struct variant_source put_foreign(struct store *store,
					 void (*pack)(struct buf *, struct str), struct str tar)
{
	auto_buf struct buf packed = BUF_INIT(PACKED_MAX);
	struct variant_source source = {.max_bytes = UINT64_MAX};
	struct err err = {0};

	pack(&packed, tar);
	source.size = packed.len;
	digest_of(tar, &source.diff_id);
	check_ok(blob_put(store, buf_str(&packed), &source.blob, &err), &err);
	return source;
}

static void a_foreign_layer_becomes_one_of_ours_or_stays(void **state)
{
	struct store_fixture *fixture = *state;
	auto_free char *tar = malloc(TAR_LEN);
	struct variant_source source;
	struct variant made;
	struct blob_info held;
	struct err err = {0};

	make_tar(tar);
	source = put_foreign(fixture->store, pack_gzip, (struct str){tar, TAR_LEN});
	check_ok(variant_make(fixture->store, &source, LAYER_GZIP, &made, &err), &err);
	assert_true(digest_equal(&made.blob, &source.blob));
	check_ok(variant_make(fixture->store, &source, LAYER_ZSTD, &made, &err), &err);
	assert_false(digest_equal(&made.blob, &source.blob));
	assert_int_equal(blob_find(fixture->store, &made.blob, &held, &err), 1);
	assert_in_range(held.chunks, 10, 60); /* cut by content, not by what was read at once */
	assert_int_equal(held.size, made.size);
}

static void a_blob_that_is_not_its_tar_is_corrupt_and_not_remembered(void **state)
{
	struct store_fixture *fixture = *state;
	struct variant_source source = put_foreign(fixture->store, pack_zstd, STR("a tar"));
	struct variant made;
	struct err err = {0};

	digest_of(STR("another tar"), &source.diff_id);
	check_err(variant_make(fixture->store, &source, LAYER_GZIP, &made, &err), &err,
		  ERR_CORRUPT);
	assert_int_equal(find(fixture->store, &source.diff_id, LAYER_GZIP, &made), 0);
}

/* Who names a tar has it only with a blob that is known to be that, or is read and is. */
static void a_variant_is_no_other_layers(void **state)
{
	struct store_fixture *fixture = *state;
	auto_free char *tar = malloc(TAR_LEN);
	struct layer_info info;
	struct variant_source source;
	struct variant_source thief = put_foreign(fixture->store, pack_zstd, STR("a tar"));
	struct variant_source twin;
	struct variant made;
	struct variant same;
	struct err err = {0};

	make_tar(tar);
	info = write_layer(fixture->store, LAYER_ZSTD, tar);
	source = source_of(&info);
	check_ok(variant_make(fixture->store, &source, LAYER_GZIP, &made, &err), &err);
	thief.diff_id = info.diff_id;
	for (int looked = 0; looked < 2; looked++) {
		struct variant_source own = thief;

		check_err(variant_make(fixture->store, &thief, LAYER_GZIP, &same, &err), &err,
			  ERR_CORRUPT);
		assert_non_null(strstr(err.text, "the image's config says"));
		digest_of(STR("a tar"), &own.diff_id);
		check_ok(variant_make(fixture->store, &own, LAYER_GZIP, &same, &err), &err);
		assert_false(digest_equal(&same.blob, &made.blob));
	}
	twin = put_foreign(fixture->store, pack_zstd, (struct str){tar, TAR_LEN});
	check_ok(variant_make(fixture->store, &twin, LAYER_GZIP, &same, &err), &err);
	check_ok(variant_make(fixture->store, &twin, LAYER_GZIP, &made, &err), &err);
	assert_true(digest_equal(&same.blob, &made.blob));
}

static void a_tar_above_the_ceiling_is_refused(void **state)
{
	struct store_fixture *fixture = *state;
	struct variant_source source = put_foreign(fixture->store, pack_zstd, STR("a tar"));
	struct variant made;
	struct err err = {0};

	source.max_bytes = 4;
	check_err(variant_make(fixture->store, &source, LAYER_GZIP, &made, &err), &err, ERR_LIMIT);
}

static void making_one_stops_when_told(void **state)
{
	struct store_fixture *fixture = *state;
	struct variant_source source = put_foreign(fixture->store, pack_zstd, STR("a tar"));
	struct cancel cancel;
	struct variant made;
	struct err err = {0};

	check_ok(cancel_init(&cancel, &err), &err);
	cancel_raise(&cancel);
	source.cancel = &cancel;
	check_err(variant_make(fixture->store, &source, LAYER_GZIP, &made, &err), &err,
		  ERR_CANCELLED);
	cancel_done(&cancel);
}

#define STORE_TEST(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(a_variant_is_the_blob_that_is_made_directly),
		STORE_TEST(a_variant_is_remembered),
		STORE_TEST(a_record_without_its_blob_is_a_miss),
		STORE_TEST(a_foreign_layer_becomes_one_of_ours_or_stays),
		STORE_TEST(a_blob_that_is_not_its_tar_is_corrupt_and_not_remembered),
		STORE_TEST(a_variant_is_no_other_layers),
		STORE_TEST(a_tar_above_the_ceiling_is_refused),
		STORE_TEST(making_one_stops_when_told),
	};

	return cmocka_run_group_tests_name("layers/variant", tests, NULL, NULL);
}
