/* SPDX-License-Identifier: Apache-2.0 */
/* Images whose config and layers are named by sha512. */
#include "layers/base/fd.h"
#include "registry/convert.h"
#include "registry/docker_archive.h"
#include "registry/layout.h"
#include "registry/local_names.h"
#include "registry/oci_archive.h"
#include "tests/registry/pulling.h"
#include "tests/registry/standin.h"
#include "tests/registry/stock.h"

#include <fcntl.h>
#include <sys/socket.h>

#define LAYOUT_FILE_MAX (2 * SAMPLE_BIG)

/* The path of a blob below a directory that has the form of a layout. */
static const char *blob_path(const char *dir, struct str digest, char path[static 256])
{
	(void)snprintf(path, 256, "%s/blobs/" STR_FMT, dir, STR_ARG(digest));
	*strchr(path + strlen(dir), ':') = '/';
	return path;
}

/* One byte of a blob of the layout becomes another. */
static void damage(const struct pulling *pulling, const struct digest *digest)
{
	char name[DIGEST_TEXT_MAX];
	char path[256];
	auto_close int fd =
		open(blob_path(pulling->layout, str_of(digest_format(digest, name)), path),
		     O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, "#", 1, 0), 1);
}

/* An answer that may hold NULs. */
static void give(const struct standin_request *request, struct str bytes)
{
	standin_say(request, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n",
		    bytes.len);
	while (bytes.len > 0 && strcmp(request->method, "HEAD") != 0) {
		ssize_t n = send(request->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);

		if (n < 0)
			return; /* the client has gone */
		bytes = str_skip(bytes, (size_t)n);
	}
}

/* A manifest by the tag 1.0, and all else by digests, as the layout has them. */
static void serve(void *ctx, const struct standin_request *request)
{
	const struct pulling *pulling = ctx;
	auto_buf struct buf bytes = BUF_INIT(LAYOUT_FILE_MAX);
	const char *name = strrchr(request->target, '/') + 1;
	char manifest[DIGEST_TEXT_MAX];
	char path[256];
	struct err err = {0};

	if (strcmp(name, "1.0") == 0)
		name = digest_format(&pulling->image.manifest, manifest);
	{
		auto_close int fd =
			open(blob_path(pulling->layout, str_of(name), path), O_RDONLY | O_CLOEXEC);

		if (fd < 0) {
			standin_answer(request, "404 Not Found", "", STR(""));
			return;
		}
		check_ok(fd_read_all(fd, &bytes, &err), &err);
	}
	give(request, buf_str(&bytes));
}

/* An image of the store, whose manifest and config were read, and renamed. */
struct own {
	struct manifest manifest;
	struct image_config config;
};

static void auto_own_release(struct own *own)
{
	manifest_done(&own->manifest);
	image_config_done(&own->config);
}

static int own_read(struct store *store, const struct digest *image, struct own *own,
		    struct err *err)
{
	auto_buf struct buf manifest = BUF_INIT(MANIFEST_MAX);
	auto_buf struct buf config = BUF_INIT(IMAGE_CONFIG_MAX);

	check_ok(blob_read_all(store, image, &manifest, err), err);
	check_ok(manifest_parse(buf_str(&manifest), &own->manifest, err), err);
	check_ok(blob_read_all(store, &own->manifest.config.digest, &config, err), err);
	check_ok(image_config_parse(buf_str(&config), &own->config, err), err);
	check_ok(local_names_take(store, &own->manifest, err), err);
	return local_names_take_diff_ids(store, &own->manifest, &own->config, err);
}

/* The pulled image's parts have one name each, and what is held is not fetched again. */
static void check_arrived(struct pulling *pulling)
{
	AUTO(own) struct own own = {0};
	const json_t *texts;
	char name[DIGEST_TEXT_MAX];
	struct err err = {0};

	pulling_check_whole(pulling);
	check_ok(own_read(pulling->store, &pulling->tag.manifest, &own, &err), &err);
	assert_int_equal(own.manifest.config.digest.algorithm, DIGEST_SHA256);
	texts = json_object_get(json_object_get(own.config.document, "rootfs"), "diff_ids");
	for (size_t i = 0; i < SAMPLE_LAYERS; i++) {
		const struct digest *id = &pulling->image.diff_ids[i];

		assert_true(digest_equal(&own.manifest.layers[i].digest, id)); /* a plain tar */
		assert_true(digest_equal(&own.config.diff_ids[i], id));
		assert_string_equal(json_string_value(json_array_get(texts, i)),
				    digest_format(id, name));
	}
	check_ok(pulling_run(pulling, &err), &err);
	assert_int_equal(pulling->fetched, 0);
	assert_int_equal(pulling->held, SAMPLE_LAYERS);
}

static void a_layout_of_them_arrives(void **state)
{
	struct pulling *pulling = *state;
	struct err err = {0};

	pulling_make(pulling, SAMPLE_SHA512);
	check_ok(pulling_run(pulling, &err), &err);
	assert_int_equal(pulling->fetched, SAMPLE_LAYERS);
	assert_true(digest_equal(&pulling->tag.manifest, &pulling->image.manifest));
	check_arrived(pulling);
}

static void a_registry_of_them_is_pulled_from(void **state)
{
	struct pulling *pulling = *state;
	struct standin server;
	struct err err = {0};

	pulling_make(pulling, SAMPLE_SHA512);
	standin_start(&server, serve, pulling);
	pulling_refer(pulling, "127.0.0.1:%u/acme/tool:1.0", server.port);
	check_ok(pulling_run(pulling, &err), &err);
	assert_int_equal(pulling->fetched, SAMPLE_LAYERS);
	check_arrived(pulling);
	standin_stop(&server);
}

static void tars_may_be_named_so_too(void **state)
{
	struct pulling *pulling = *state;
	struct err err = {0};

	pulling_make(pulling, SAMPLE_SHA512_IDS);
	check_ok(pulling_run(pulling, &err), &err);
	check_arrived(pulling);
	pulling_make(pulling, SAMPLE_FINE); /* the same ones, as others name them */
	check_ok(pulling_run(pulling, &err), &err);
	assert_int_equal(pulling->fetched, 0);
	check_arrived(pulling);
}

/* It is read once more, and keeps the tree that it has. */
static void a_tar_of_both_names_is_one(void **state)
{
	struct pulling *pulling = *state;
	struct err err = {0};

	pulling_make(pulling, SAMPLE_FINE);
	check_ok(pulling_run(pulling, &err), &err);
	pulling_make(pulling, SAMPLE_SHA512_IDS);
	check_ok(pulling_run(pulling, &err), &err);
	check_arrived(pulling);
	assert_int_equal(store_fixture_count(pulling->store, STORE_TREES), SAMPLE_LAYERS);
}

/* While it comes, and where it is held. */
static void a_tar_of_another_sha512_is_refused(void **state)
{
	struct pulling *pulling = *state;
	struct err err = {0};

	pulling_make(pulling, SAMPLE_SHA512_ID);
	for (int held = 0; held < 2; held++) {
		check_err(pulling_run(pulling, &err), &err, ERR_CORRUPT);
		assert_non_null(strstr(err.text, "its tar is sha512:"));
		pulling_check_unnamed(pulling);
		pulling->spec.bare = true;
		check_ok(pulling_run(pulling, &err), &err);
		pulling->spec.bare = false;
	}
}

/* Nobody knows yet whether they are what their config says. */
static void a_tar_is_renamed_once_it_was_unpacked(void **state)
{
	struct pulling *pulling = *state;
	AUTO(own) struct own copied = {0};
	AUTO(own) struct own lying = {0};
	struct digest image;
	struct err err = {0};

	pulling_make(pulling, SAMPLE_SHA512_ID);
	pulling->spec.bare = true;
	check_ok(pulling_run(pulling, &err), &err);
	image = pulling->tag.manifest;
	check_err(own_read(pulling->store, &image, &copied, &err), &err, ERR_UNAVAILABLE);
	assert_non_null(strstr(err.text, "was never unpacked here"));
	pulling->spec.bare = false;
	pulling_make(pulling, SAMPLE_SHA512_IDS);
	check_ok(pulling_run(pulling, &err), &err);
	assert_int_equal(pulling->held, SAMPLE_LAYERS);
	check_arrived(pulling);
	check_err(own_read(pulling->store, &image, &lying, &err), &err, ERR_CORRUPT);
}

/* The variant's layers are ours, and its config is the one that it was. */
static void layers_are_converted_by_what_they_are(void **state)
{
	struct pulling *pulling = *state;
	struct store *store = pulling->made->store;
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	auto_manifest struct manifest manifest = {0};
	struct digest out;
	struct err err = {0};

	pulling_make(pulling, SAMPLE_SHA512_IDS);
	check_ok(convert_image(store, &pulling->image.manifest, LAYER_GZIP, NULL, &out, &err),
		 &err);
	check_ok(blob_read_all(store, &out, &text, &err), &err);
	check_ok(manifest_parse(buf_str(&text), &manifest, &err), &err);
	assert_true(digest_equal(&manifest.config.digest, &pulling->image.config));
	for (size_t i = 0; i < SAMPLE_LAYERS; i++) {
		assert_true(str_equal(manifest.layers[i].media_type, STR(MEDIA_OCI_LAYER_GZIP)));
		assert_int_equal(manifest.layers[i].digest.algorithm, DIGEST_SHA256);
	}
	pulling_make(pulling, SAMPLE_SHA512_ID);
	check_err(convert_image(store, &pulling->image.manifest, LAYER_GZIP, NULL, &out, &err),
		  &err, ERR_CORRUPT);
	assert_non_null(strstr(err.text, "its tar is sha512:"));
}

/* What came by its sha256 before is fetched once more for the other name, and kept once. */
static void a_layer_of_both_names_is_one(void **state)
{
	struct pulling *pulling = *state;
	struct digest id;
	struct err err = {0};

	pulling_make(pulling, SAMPLE_FINE);
	check_ok(pulling_run(pulling, &err), &err);
	pulling_make(pulling, SAMPLE_SHA512);
	check_ok(pulling_run(pulling, &err), &err);
	assert_int_equal(pulling->fetched, SAMPLE_LAYERS);
	assert_int_equal(blob_find_id(pulling->store, &pulling->image.layers[0], &id, &err), 1);
	assert_true(digest_equal(&id, &pulling->image.diff_ids[0]));
	check_arrived(pulling);
}

/* The config, or the first layer, has other bytes. */
static void check_refused(struct pulling *pulling, bool config)
{
	const struct digest *wrong = config ? &pulling->image.config : &pulling->image.layers[0];
	struct blob_info info;
	struct err err = {0};

	damage(pulling, wrong);
	check_err(pulling_run(pulling, &err), &err, ERR_CORRUPT);
	assert_int_equal(blob_find(pulling->store, wrong, &info, &err), 0);
	pulling_check_unnamed(pulling);
}

static void bytes_of_another_sha512_are_refused(void **state)
{
	static const struct {
		bool registry;
		bool bare;
	} ways[] = {{false, false}, {false, true}, {true, false}};

	for (size_t i = 0; i < 2 * sizeof(ways) / sizeof(ways[0]); i++) {
		struct standin server = {.fd = -1};
		struct pulling *pulling;

		assert_int_equal(pulling_free(state), 0);
		assert_int_equal(pulling_new(state), 0);
		pulling = *state;
		pulling_make(pulling, SAMPLE_SHA512);
		pulling->spec.bare = ways[i / 2].bare;
		if (ways[i / 2].registry) {
			standin_start(&server, serve, pulling);
			pulling_refer(pulling, "127.0.0.1:%u/acme/tool:1.0", server.port);
		}
		check_refused(pulling, i % 2 == 0);
		standin_stop(&server);
	}
}

/* An index that names the sample by its sha512, in the layout as 2.0. */
static void write_index(struct pulling *pulling, struct digest *out, struct digest *out_manifest)
{
	struct store *store = pulling->made->store;
	auto_buf struct buf manifest = BUF_INIT(MANIFEST_MAX);
	auto_buf struct buf text = BUF_INIT(4000);
	char name[DIGEST_TEXT_MAX];
	struct digest id;
	struct err err = {0};

	check_ok(blob_read_all(store, &pulling->image.manifest, &manifest, &err), &err);
	*out_manifest = stock_digest(buf_str(&manifest), DIGEST_SHA512);
	check_ok(blob_put_as(store, buf_str(&manifest), out_manifest, &id, &err), &err);
	check_ok(buf_addf(&text, &err,
			  "{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_INDEX
			  "\",\"manifests\":[{\"mediaType\":\"" MEDIA_OCI_MANIFEST
			  "\",\"digest\":\"%s\",\"size\":%zu,\"platform\":{\"os\":\"linux\","
			  "\"architecture\":\"amd64\"}}]}",
			  digest_format(out_manifest, name), manifest.len),
		 &err);
	check_ok(blob_put(store, buf_str(&text), out, &err), &err);
	check_ok(layout_write(store, out, str_of(pulling->layout), STR("2.0"), NULL, &err), &err);
	pulling_refer(pulling, "oci:%s:2.0", pulling->layout);
}

static void an_index_may_name_manifests_so(void **state)
{
	struct pulling *pulling = *state;
	struct digest manifest;
	struct digest index;
	struct blob_info info;
	struct err err = {0};

	pulling_make(pulling, SAMPLE_SHA512);
	write_index(pulling, &index, &manifest);
	check_ok(pulling_run(pulling, &err), &err);
	assert_true(digest_equal(&pulling->tag.target, &index));
	assert_true(digest_equal(&pulling->tag.manifest, &pulling->image.manifest));
	assert_int_equal(blob_find(pulling->store, &manifest, &info, &err), 1);
	check_arrived(pulling);
}

static void a_manifest_of_another_sha512_is_refused(void **state)
{
	struct pulling *pulling = *state;
	struct digest manifest;
	struct digest index;
	struct err err = {0};

	pulling_make(pulling, SAMPLE_SHA512);
	write_index(pulling, &index, &manifest);
	damage(pulling, &manifest);
	for (int bare = 0; bare < 2; bare++) {
		pulling->spec.bare = bare == 1;
		pulling->spec.all_platforms = bare == 1;
		check_err(pulling_run(pulling, &err), &err, ERR_CORRUPT);
		pulling_check_unnamed(pulling);
	}
}

static void keep_archive(const char *path, const struct buf *bytes)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	struct err err = {0};

	assert_true(fd >= 0);
	check_ok(fd_write_all(fd, bytes->ptr, bytes->len, &err), &err);
}

/* Write the image of a store as this kind of file; it was copied there, not pulled. */
static void write_archive(struct pulling *pulling, struct store *from, bool docker, struct buf *out)
{
	AUTO(json) json_t *names = json_pack("[s]", "docker.io/acme/a:1");
	struct buf_sink sink = BUF_SINK(out);
	struct err err = {0};

	if (docker) {
		const struct docker_archive_spec spec = {.image = pulling->tag.manifest,
							 .names = names};

		check_ok(docker_archive_write(from, &spec, &sink.sink, &err), &err);
	} else {
		const struct oci_archive_spec spec = {
			.image = pulling->tag.manifest, .tag = STR("1"), .name = STR("")};

		check_ok(oci_archive_write(from, &spec, &sink.sink, &err), &err);
	}
}

static void what_was_copied_goes_on_in_every_form(void **state)
{
	static const char *const forms[] = {"oci", "oci-archive", "docker-archive"};
	struct pulling *pulling = *state;
	struct digest image;
	char path[96];
	struct err err = {0};

	pulling_make(pulling, SAMPLE_SHA512_IDS);
	pulling->spec.bare = true;
	check_ok(pulling_run(pulling, &err), &err);
	image = pulling->tag.manifest;
	pulling->spec.bare = false;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		auto_buf struct buf bytes = BUF_INIT(4 * SAMPLE_BIG);

		(void)snprintf(path, sizeof(path), "%s/%s", pulling->made->parent, forms[i]);
		pulling->tag.manifest = image;
		if (i == 0) {
			check_ok(layout_write(pulling->store, &image, str_of(path), STR("1"), NULL,
					      &err),
				 &err);
		} else {
			write_archive(pulling, pulling->store, i == 2, &bytes);
			keep_archive(path, &bytes);
		}
		pulling_refer(pulling, "%s:%s%s", forms[i], path, i == 2 ? "" : ":1");
		check_ok(pulling_run(pulling, &err), &err);
		pulling_check_whole(pulling);
		assert_true(i == 2 || digest_equal(&pulling->tag.manifest, &image));
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, pulling_new, pulling_free)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_layout_of_them_arrives),
		TEST(a_registry_of_them_is_pulled_from),
		TEST(a_layer_of_both_names_is_one),
		TEST(tars_may_be_named_so_too),
		TEST(a_tar_of_both_names_is_one),
		TEST(a_tar_of_another_sha512_is_refused),
		TEST(a_tar_is_renamed_once_it_was_unpacked),
		TEST(layers_are_converted_by_what_they_are),
		TEST(bytes_of_another_sha512_are_refused),
		TEST(an_index_may_name_manifests_so),
		TEST(a_manifest_of_another_sha512_is_refused),
		TEST(what_was_copied_goes_on_in_every_form),
	};

	return cmocka_run_group_tests_name("registry/pull_sha512", tests, NULL, NULL);
}
