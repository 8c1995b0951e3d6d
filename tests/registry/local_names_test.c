/* SPDX-License-Identifier: Apache-2.0 */
/* What is taken of a config's word. For those who name by sha512 see pull_sha512_test.c. */
#include "registry/local_names.h"

#include "layers/blob.h"
#include "tests/registry/pulling.h"

/* Copy an image into the store as a push would: nobody looks into its layers. */
static struct digest copy(struct pulling *pulling, enum sample_fault fault)
{
	struct err err = {0};

	pulling_make(pulling, fault);
	pulling->spec.bare = true;
	check_ok(pulling_run(pulling, &err), &err);
	pulling->spec.bare = false;
	return pulling->tag.manifest;
}

static void unpack(struct pulling *pulling, enum sample_fault fault)
{
	struct err err = {0};

	pulling_make(pulling, fault);
	check_ok(pulling_run(pulling, &err), &err);
}

static int take(struct pulling *pulling, const struct digest *image, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	auto_buf struct buf config_text = BUF_INIT(IMAGE_CONFIG_MAX);
	auto_manifest struct manifest manifest = {0};
	auto_image_config struct image_config config = {0};

	check_ok(blob_read_all(pulling->store, image, &text, err), err);
	check_ok(manifest_parse(buf_str(&text), &manifest, err), err);
	check_ok(blob_read_all(pulling->store, &manifest.config.digest, &config_text, err), err);
	check_ok(image_config_parse(buf_str(&config_text), &config, err), err);
	return local_names_take_diff_ids(pulling->store, &manifest, &config, err);
}

static void a_diff_id_is_taken_once_the_layer_was_unpacked(void **state)
{
	struct pulling *pulling = *state;
	struct digest image = copy(pulling, SAMPLE_FINE);
	struct err err = {0};

	check_err(take(pulling, &image, &err), &err, ERR_UNAVAILABLE);
	assert_non_null(strstr(err.text, "was never unpacked here"));
	unpack(pulling, SAMPLE_FINE);
	assert_int_equal(pulling->held, SAMPLE_LAYERS);
	check_ok(take(pulling, &image, &err), &err);
}

/* The trees that it claims are there, and so are the layers to which they belong. */
static void a_layer_that_claims_another_ones_tar_is_corrupt(void **state)
{
	struct pulling *pulling = *state;
	struct digest image;
	struct err err = {0};

	unpack(pulling, SAMPLE_FINE);
	image = copy(pulling, SAMPLE_SWAPPED);
	check_err(take(pulling, &image, &err), &err, ERR_CORRUPT);
	assert_non_null(strstr(err.text, "layer sha256:"));
	assert_non_null(strstr(err.text, "the image's config says"));
}

static void every_layer_needs_a_diff_id(void **state)
{
	struct pulling *pulling = *state;
	struct digest image;
	struct err err = {0};

	unpack(pulling, SAMPLE_FINE);
	image = copy(pulling, SAMPLE_FEW_IDS);
	check_err(take(pulling, &image, &err), &err, ERR_CORRUPT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, pulling_new, pulling_free)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_diff_id_is_taken_once_the_layer_was_unpacked),
		TEST(a_layer_that_claims_another_ones_tar_is_corrupt),
		TEST(every_layer_needs_a_diff_id),
	};

	return cmocka_run_group_tests_name("registry/local_names", tests, NULL, NULL);
}
