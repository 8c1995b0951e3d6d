/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/convert.h"

#include "layers/blob.h"
#include "layers/layer.h"
#include "registry/manifest.h"
#include "tests/layers/packing.h"
#include "tests/layers/store_fixture.h"

#include <string.h>

#define TEXT_MAX ((size_t)100 * 1000)
#define TARS 3

static const char *const tars[TARS] = {"the lowest tar", "a tar between", "the highest"};

typedef void pack_fn(struct buf *out, struct str plain);

static void pack_plain(struct buf *out, struct str plain)
{
	struct err err = {0};

	check_ok(buf_add(out, plain, &err), &err);
}

struct layer {
	pack_fn *pack;
	const char *type;
	const char *annotations; /* or NULL */
};

static struct digest put(struct store *store, struct str bytes)
{
	struct digest digest;
	struct err err = {0};

	check_ok(blob_put(store, bytes, &digest, &err), &err);
	return digest;
}

static void add_layer(struct store *store, const struct layer *layer, const char *tar,
		      struct buf *out)
{
	auto_buf struct buf packed = BUF_INIT(TEXT_MAX);
	char name[DIGEST_TEXT_MAX];
	struct digest digest;
	struct err err = {0};

	layer->pack(&packed, str_of(tar));
	digest = put(store, buf_str(&packed));
	check_ok(buf_addf(out, &err, "{\"mediaType\":\"%s\",\"digest\":\"%s\",\"size\":%zu%s%s}",
			  layer->type, digest_format(&digest, name), packed.len,
			  layer->annotations ? ",\"annotations\":" : "",
			  layer->annotations ? layer->annotations : ""),
		 &err);
}

static struct digest put_config(struct store *store, size_t *out_size)
{
	auto_buf struct buf text = BUF_INIT(TEXT_MAX);
	struct err err = {0};

	check_ok(buf_add(&text,
			 STR("{\"os\":\"linux\",\"architecture\":\"amd64\",\"rootfs\":"
			     "{\"type\":\"layers\",\"diff_ids\":["),
			 &err),
		 &err);
	for (size_t i = 0; i < TARS; i++) {
		char name[DIGEST_TEXT_MAX];
		struct digest digest;

		digest_of(str_of(tars[i]), &digest);
		check_ok(buf_addf(&text, &err, "%s\"%s\"", i ? "," : "",
				  digest_format(&digest, name)),
			 &err);
	}
	check_ok(buf_add(&text, STR("]}}"), &err), &err);
	*out_size = text.len;
	return put(store, buf_str(&text));
}

static struct digest put_image(struct store *store, const char *type, const char *config_type,
			       const struct layer layers[TARS])
{
	auto_buf struct buf text = BUF_INIT(TEXT_MAX);
	char name[DIGEST_TEXT_MAX];
	struct err err = {0};
	size_t size;
	struct digest config = put_config(store, &size);

	check_ok(buf_addf(&text, &err,
			  "{\"schemaVersion\":2,\"mediaType\":\"%s\",\"annotations\":{\"a\":\"b\"},"
			  "\"config\":{\"mediaType\":\"%s\",\"digest\":\"%s\",\"size\":%zu},"
			  "\"layers\":[",
			  type, config_type, digest_format(&config, name), size),
		 &err);
	for (size_t i = 0; i < TARS; i++) {
		if (i > 0)
			check_ok(buf_add(&text, STR(","), &err), &err);
		add_layer(store, &layers[i], tars[i], &text);
	}
	check_ok(buf_add(&text, STR("]}"), &err), &err);
	return put(store, buf_str(&text));
}

static struct digest convert(struct store *store, const struct digest *image,
			     enum layer_codec codec)
{
	struct digest out;
	struct err err = {0};

	check_ok(convert_image(store, image, codec, NULL, &out, &err), &err);
	return out;
}

static void read_manifest(struct store *store, const struct digest *digest, struct manifest *out)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	struct err err = {0};

	check_ok(blob_read_all(store, digest, &text, &err), &err);
	check_ok(manifest_parse(buf_str(&text), out, &err), &err);
}

static void check_layers(struct store *store, const struct manifest *manifest, const char *type,
			 struct str magic)
{
	assert_int_equal(manifest->layer_count, TARS);
	for (size_t i = 0; i < TARS; i++) {
		auto_buf struct buf bytes = BUF_INIT(TEXT_MAX);
		auto_buf struct buf plain = BUF_INIT(TEXT_MAX);
		struct buf_sink sink = BUF_SINK(&plain);
		const struct descriptor *layer = &manifest->layers[i];
		struct err err = {0};

		assert_true(str_equal(layer->media_type, str_of(type)));
		check_ok(blob_read_all(store, &layer->digest, &bytes, &err), &err);
		assert_int_equal(layer->size, bytes.len);
		assert_true(str_starts(buf_str(&bytes), magic));
		check_ok(layer_read(store, &layer->digest, TEXT_MAX, &sink.sink, &err), &err);
		assert_true(str_equal(buf_str(&plain), str_of(tars[i])));
	}
}

/* The last two say what they are not. */
static const struct layer mixed[TARS] = {
	{pack_gzip, MEDIA_OCI_LAYER_GZIP, NULL},
	{pack_zstd, MEDIA_OCI_LAYER_TAR, NULL},
	{pack_plain, MEDIA_OCI_LAYER_GZIP, NULL},
};

static void every_layer_becomes_what_is_asked_for(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest image =
		put_image(fixture->store, MEDIA_OCI_MANIFEST, MEDIA_OCI_CONFIG, mixed);
	const struct {
		enum layer_codec codec;
		const char *type;
		struct str magic;
	} cases[] = {{LAYER_ZSTD, MEDIA_OCI_LAYER_ZSTD, STR("\x28\xb5\x2f\xfd")},
		     {LAYER_GZIP, MEDIA_OCI_LAYER_GZIP, STR("\x1f\x8b")}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_manifest struct manifest before = {0};
		auto_manifest struct manifest after = {0};
		struct digest out = convert(fixture->store, &image, cases[i].codec);

		read_manifest(fixture->store, &image, &before);
		read_manifest(fixture->store, &out, &after);
		check_layers(fixture->store, &after, cases[i].type, cases[i].magic);
		assert_true(digest_equal(&after.config.digest, &before.config.digest));
		assert_true(json_equal(json_object_get(after.document, "annotations"),
				       json_object_get(before.document, "annotations")));
		assert_true(digest_equal(&before.layers[i == 0 ? 1 : 0].digest,
					 &after.layers[i == 0 ? 1 : 0].digest));
		/* And once more: there is nothing left to do. */
		image = convert(fixture->store, &out, cases[i].codec);
		assert_true(digest_equal(&image, &out));
		image = put_image(fixture->store, MEDIA_OCI_MANIFEST, MEDIA_OCI_CONFIG, mixed);
	}
}

static void dockers_types_become_ocis_unless_nothing_changes(void **state)
{
	static const struct layer docker[TARS] = {
		{pack_gzip, MEDIA_DOCKER_LAYER_GZIP, NULL},
		{pack_gzip, MEDIA_DOCKER_LAYER_GZIP, NULL},
		{pack_gzip, MEDIA_DOCKER_LAYER_GZIP, NULL},
	};
	struct store_fixture *fixture = *state;
	auto_manifest struct manifest after = {0};
	struct digest image = put_image(fixture->store, MEDIA_DOCKER_MANIFEST,
					"application/vnd.docker.container.image.v1+json", docker);
	struct digest same = convert(fixture->store, &image, LAYER_GZIP);
	struct digest out = convert(fixture->store, &image, LAYER_ZSTD);

	assert_true(digest_equal(&same, &image));
	read_manifest(fixture->store, &out, &after);
	assert_true(str_equal(after.media_type, STR(MEDIA_OCI_MANIFEST)));
	assert_true(str_equal(after.config.media_type, STR(MEDIA_OCI_CONFIG)));
	check_layers(fixture->store, &after, MEDIA_OCI_LAYER_ZSTD, STR("\x28\xb5\x2f\xfd"));
}

static void annotations_of_the_old_bytes_are_dropped(void **state)
{
	static const struct layer annotated[TARS] = {
		{pack_gzip, MEDIA_OCI_LAYER_GZIP,
		 "{\"containerd.io/snapshot/stargz/toc.digest\":\"sha256:0\",\"mine\":\"kept\"}"},
		{pack_gzip, MEDIA_OCI_LAYER_GZIP,
		 "{\"io.github.containers.zstd-chunked.manifest-position\":\"1\"}"},
		{pack_gzip, MEDIA_OCI_LAYER_GZIP, NULL},
	};
	struct store_fixture *fixture = *state;
	auto_manifest struct manifest after = {0};
	struct digest image =
		put_image(fixture->store, MEDIA_OCI_MANIFEST, MEDIA_OCI_CONFIG, annotated);
	struct digest out = convert(fixture->store, &image, LAYER_ZSTD);
	json_t *layers;
	json_t *kept;

	read_manifest(fixture->store, &out, &after);
	layers = json_object_get(after.document, "layers");
	kept = json_object_get(json_array_get(layers, 0), "annotations");
	assert_int_equal(json_object_size(kept), 1);
	assert_string_equal(json_string_value(json_object_get(kept, "mine")), "kept");
	assert_null(json_object_get(json_array_get(layers, 1), "annotations"));
}

static void of_an_index_the_images_that_are_here_are_converted(void **state)
{
	struct store_fixture *fixture = *state;
	auto_buf struct buf text = BUF_INIT(TEXT_MAX);
	auto_buf struct buf after = BUF_INIT(TEXT_MAX);
	AUTO(json) json_t *document = NULL;
	struct digest image =
		put_image(fixture->store, MEDIA_OCI_MANIFEST, MEDIA_OCI_CONFIG, mixed);
	struct digest converted = convert(fixture->store, &image, LAYER_GZIP);
	struct digest index;
	struct digest out;
	json_t *entries;
	char name[DIGEST_TEXT_MAX];
	struct err err = {0};

	check_ok(buf_addf(&text, &err,
			  "{\"schemaVersion\":2,\"manifests\":[{\"digest\":\"%s\",\"size\":1,"
			  "\"platform\":{\"os\":\"linux\"}},{\"digest\":\"sha256:%064d\","
			  "\"size\":2}]}",
			  digest_format(&image, name), 7),
		 &err);
	index = put(fixture->store, buf_str(&text));
	out = convert(fixture->store, &index, LAYER_GZIP);
	check_ok(blob_read_all(fixture->store, &out, &after, &err), &err);
	check_ok(json_parse(buf_str(&after), TEXT_MAX, &document, &err), &err);
	entries = json_object_get(document, "manifests");
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(entries, 0), "digest")),
		digest_format(&converted, name));
	assert_non_null(json_object_get(json_array_get(entries, 0), "platform"));
	assert_int_equal(json_integer_value(json_object_get(json_array_get(entries, 1), "size")),
			 2);
}

static void what_is_no_tar_is_left_alone(void **state)
{
	static const struct layer attestation[TARS] = {
		{pack_plain, "application/vnd.in-toto+json", NULL},
		{pack_plain, "application/vnd.in-toto+json", NULL},
		{pack_plain, "application/vnd.in-toto+json", NULL},
	};
	struct store_fixture *fixture = *state;
	struct digest image =
		put_image(fixture->store, MEDIA_OCI_MANIFEST, MEDIA_OCI_CONFIG, attestation);
	struct digest out = convert(fixture->store, &image, LAYER_ZSTD);

	assert_true(digest_equal(&out, &image));
}

static void pack_another(struct buf *out, struct str plain)
{
	(void)plain;
	pack_zstd(out, STR("something else"));
}

static void a_layer_of_another_tar_is_corrupt(void **state)
{
	static const struct layer lying[TARS] = {
		{pack_gzip, MEDIA_OCI_LAYER_GZIP, NULL},
		{pack_another, MEDIA_OCI_LAYER_ZSTD, NULL},
		{pack_gzip, MEDIA_OCI_LAYER_GZIP, NULL},
	};
	struct store_fixture *fixture = *state;
	struct digest image =
		put_image(fixture->store, MEDIA_OCI_MANIFEST, MEDIA_OCI_CONFIG, lying);
	struct digest out;
	struct err err = {0};

	check_err(convert_image(fixture->store, &image, LAYER_GZIP, NULL, &out, &err), &err,
		  ERR_CORRUPT);
	assert_non_null(strstr(err.text, "its tar is"));
}

static void what_is_not_here_is_not_found(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest out;
	struct digest image;
	struct err err = {0};

	digest_of(STR("nothing"), &image);
	check_err(convert_image(fixture->store, &image, LAYER_GZIP, NULL, &out, &err), &err,
		  ERR_NOT_FOUND);
}

#define STORE_TEST(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(every_layer_becomes_what_is_asked_for),
		STORE_TEST(dockers_types_become_ocis_unless_nothing_changes),
		STORE_TEST(annotations_of_the_old_bytes_are_dropped),
		STORE_TEST(of_an_index_the_images_that_are_here_are_converted),
		STORE_TEST(what_is_no_tar_is_left_alone),
		STORE_TEST(a_layer_of_another_tar_is_corrupt),
		STORE_TEST(what_is_not_here_is_not_found),
	};

	return cmocka_run_group_tests_name("registry/convert", tests, NULL, NULL);
}
