/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/fd.h"
#include "layers/codec_priv.h"
#include "registry/tar_out_priv.h"
#include "tests/layers/tarball.h"
#include "tests/registry/pulling.h"

#include <fcntl.h>

/* An archive made of the sample's layout, by hand, so that it can lie. */
struct archives {
	struct pulling *pulling;
	struct tarball tar;
	char path[96];
};

static int setup(void **state)
{
	static struct archives archives;
	void *pulling = NULL;

	if (pulling_new(&pulling) != 0)
		return -1;
	archives.pulling = pulling;
	pulling_make(archives.pulling, SAMPLE_FINE);
	tarball_init(&archives.tar);
	(void)snprintf(archives.path, sizeof(archives.path), "%s/a.tar",
		       archives.pulling->made->parent);
	*state = &archives;
	return 0;
}

static int teardown(void **state)
{
	struct archives *archives = *state;
	void *pulling = archives->pulling;

	tarball_done(&archives->tar);
	return pulling_free(&pulling);
}

static void write_tar(struct archives *archives)
{
	auto_close int fd = open(archives->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	struct err err = {0};

	tarball_end(&archives->tar);
	assert_true(fd >= 0);
	check_ok(fd_write_all(fd, archives->tar.bytes.ptr, archives->tar.bytes.len, &err), &err);
}

/* Put a blob of the maker's store in, under that name. */
static void add_blob(struct archives *archives, const struct digest *digest, const char *name)
{
	auto_buf struct buf bytes = BUF_INIT(2 * SAMPLE_BIG);
	struct err err = {0};

	check_ok(blob_read_all(archives->pulling->made->store, digest, &bytes, &err), &err);
	tarball_entry(&archives->tar, .name = name, .data = buf_str(&bytes));
}

static void add_oci_blob(struct archives *archives, const struct digest *digest)
{
	char hex[DIGEST_HEX_MAX];
	char name[128];

	(void)snprintf(name, sizeof(name), "blobs/sha256/%s", digest_hex(digest, hex));
	add_blob(archives, digest, name);
}

static void sample_config_of(const struct archives *archives, struct digest *out)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	auto_manifest struct manifest manifest = {0};
	struct err err = {0};

	check_ok(blob_read_all(archives->pulling->made->store, &archives->pulling->image.manifest,
			       &text, &err),
		 &err);
	check_ok(manifest_parse(buf_str(&text), &manifest, &err), &err);
	*out = manifest.config.digest;
}

/* Layers, config and manifest, without the first `left_out` layers. */
static void add_oci_blobs(struct archives *archives, size_t left_out)
{
	const struct sample_image *image = &archives->pulling->image;
	struct digest config;

	sample_config_of(archives, &config);
	for (size_t i = left_out; i < SAMPLE_LAYERS; i++)
		add_oci_blob(archives, &image->layers[i]);
	add_oci_blob(archives, &config);
	add_oci_blob(archives, &image->manifest);
}

static void add_oci_index(struct archives *archives, const char *annotations)
{
	auto_buf struct buf text = BUF_INIT(2000);
	char digest[DIGEST_TEXT_MAX];
	struct err err = {0};

	check_ok(buf_addf(&text, &err,
			  "{\"schemaVersion\":2,\"manifests\":[{\"digest\":\"%s\",\"size\":1,"
			  "\"annotations\":{%s}}]}",
			  digest_format(&archives->pulling->image.manifest, digest), annotations),
		 &err);
	tarball_entry(&archives->tar, .name = "index.json", .data = buf_str(&text));
}

/* manifest.json, with whatever Layers are given. */
static void add_docker_list(struct archives *archives, const char *tags, const char *layers)
{
	auto_buf struct buf text = BUF_INIT(4000);
	struct err err = {0};

	check_ok(buf_addf(&text, &err,
			  "[{\"Config\":\"config.json\",\"RepoTags\":%s,\"Layers\":[%s]}]", tags,
			  layers),
		 &err);
	tarball_entry(&archives->tar, .name = "manifest.json", .data = buf_str(&text));
}

#define FOUR_LAYERS "\"0/layer.tar\",\"1/layer.tar\",\"2/layer.tar\",\"3/layer.tar\""

static void add_docker_blobs(struct archives *archives)
{
	struct digest config;
	char name[32];

	sample_config_of(archives, &config);
	add_blob(archives, &config, "config.json");
	for (int i = 0; i < SAMPLE_LAYERS; i++) {
		(void)snprintf(name, sizeof(name), "%d/layer.tar", i);
		add_blob(archives, &archives->pulling->image.layers[i], name);
	}
}

static int run(struct archives *archives, const char *transport, struct err *err)
{
	write_tar(archives);
	pulling_refer(archives->pulling, "%s:%s", transport, archives->path);
	return pulling_run(archives->pulling, err);
}

/* What docker save, podman and skopeo write has its index last. */
static void an_oci_archive_arrives_whole_in_any_order(void **state)
{
	struct archives *archives = *state;
	struct err err = {0};

	add_oci_blobs(archives, 0);
	add_oci_index(archives, "");
	check_ok(run(archives, "oci-archive", &err), &err);
	assert_true(
		digest_equal(&archives->pulling->tag.manifest, &archives->pulling->image.manifest));
	pulling_check_whole(archives->pulling);
}

static void a_blob_that_is_not_there_is_told(void **state)
{
	struct archives *archives = *state;
	struct err err = {0};

	add_oci_index(archives, "");
	add_oci_blobs(archives, 1);
	check_err(run(archives, "oci-archive", &err), &err, ERR_CORRUPT);
	assert_non_null(strstr(err.text, "the archive has no blobs/sha256/"));
	pulling_check_unnamed(archives->pulling);
}

/* A manifest under another's name, and a layer under another's. */
static void what_is_not_its_digest_is_corrupt(void **state)
{
	struct archives *archives = *state;
	const struct sample_image *image = &archives->pulling->image;
	char hex[DIGEST_HEX_MAX];
	char name[128];
	struct err err = {0};

	add_oci_index(archives, "");
	add_oci_blobs(archives, 1);
	(void)snprintf(name, sizeof(name), "blobs/sha256/%s", digest_hex(&image->layers[0], hex));
	add_blob(archives, &image->layers[1], name); /* of the same size */
	check_err(run(archives, "oci-archive", &err), &err, ERR_CORRUPT);
	pulling_check_unnamed(archives->pulling);
	tarball_done(&archives->tar);
	tarball_init(&archives->tar);
	add_oci_index(archives, "");
	(void)snprintf(name, sizeof(name), "blobs/sha256/%s", digest_hex(&image->manifest, hex));
	add_blob(archives, &image->layers[1], name);
	check_err(run(archives, "oci-archive", &err), &err, ERR_CORRUPT);
	assert_non_null(strstr(err.text, "is not what its name says"));
}

static bool is_named(const struct archives *archives, const char *name, struct tag *out)
{
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};
	int found;

	check_ok(meta_begin(archives->pulling->store, META_READ, &meta, &err), &err);
	found = tag_find(meta, str_of(name), &archives->pulling->spec.platform, out, &err);
	check_ok(found, &err);
	return found == 1;
}

/* The same config and the same diff ids; the layers are the plain tars. */
static void a_docker_archive_arrives_with_its_names(void **state)
{
	struct archives *archives = *state;
	struct tag tag;
	struct err err = {0};

	archives->pulling->spec.name_as_there = true;
	add_docker_blobs(archives);
	add_docker_list(archives, "[\"mine:1\",\"h:5000/a/b:2\",\"not a name\"]", FOUR_LAYERS);
	check_ok(run(archives, "docker-archive", &err), &err);
	assert_true(is_named(archives, "docker.io/library/mine:1", &tag));
	assert_true(is_named(archives, "h:5000/a/b:2", &tag));
	assert_false(tag.pulled);
	archives->pulling->spec.name_as_there = false;
	check_ok(pulling_run(archives->pulling, &err), &err);
	pulling_check_whole(archives->pulling);
}

static void a_given_name_wins(void **state)
{
	struct archives *archives = *state;
	struct tag tag;
	struct err err = {0};

	archives->pulling->spec.name_as_there = true;
	add_oci_blobs(archives, 0);
	add_oci_index(archives, "\"io.containerd.image.name\":\"docker.io/acme/a:1\","
				"\"org.opencontainers.image.ref.name\":\"1\"");
	check_ok(run(archives, "oci-archive", &err), &err);
	assert_true(is_named(archives, "docker.io/acme/a:1", &tag));
	archives->pulling->spec.name = STR("docker.io/acme/b:1");
	check_ok(pulling_run(archives->pulling, &err), &err);
	assert_true(is_named(archives, "docker.io/acme/b:1", &tag));
	assert_false(is_named(archives, "docker.io/acme/b:2", &tag));
	pulling_check_unnamed(archives->pulling);
}

/* Versions before 25 wrote the layer that two images share as a link. */
static void a_linked_layer_is_the_one_that_it_names(void **state)
{
	struct archives *archives = *state;
	struct digest config;
	struct err err = {0};

	sample_config_of(archives, &config);
	add_docker_list(archives, "null",
			"\"0/layer.tar\",\"1/layer.tar\",\"2/layer.tar\",\"x/l\"");
	tarball_entry(&archives->tar, .name = "x/l", .type = '2', .link = "../3/layer.tar");
	add_docker_blobs(archives);
	check_ok(run(archives, "docker-archive", &err), &err);
	pulling_check_whole(archives->pulling);
}

/* One frame or member of a layer's tar, behind some bytes. */
static void add_packed(struct archives *archives, size_t layer, const char *name,
		       const struct codec *codec, struct str before)
{
	auto_buf struct buf plain = BUF_INIT(2 * SAMPLE_BIG);
	auto_buf struct buf packed = BUF_INIT(3 * SAMPLE_BIG);
	struct codec_context *context = codec->open();
	auto_free char *frame = malloc(2 * SAMPLE_BIG);
	struct err err = {0};
	size_t len = 0;

	check_ok(blob_read_all(archives->pulling->made->store,
			       &archives->pulling->image.layers[layer], &plain, &err),
		 &err);
	check_ok(codec->compress(context, buf_str(&plain), frame, 2 * SAMPLE_BIG, &len, &err),
		 &err);
	codec->close(context);
	check_ok(buf_add(&packed, before, &err), &err);
	check_ok(buf_add(&packed, (struct str){frame, len}, &err), &err);
	tarball_entry(&archives->tar, .name = name, .data = buf_str(&packed));
}

static void check_layer_types(const struct archives *archives, const char *const *types)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	auto_manifest struct manifest manifest = {0};
	struct err err = {0};

	check_ok(blob_read_all(archives->pulling->store, &archives->pulling->tag.manifest, &text,
			       &err),
		 &err);
	check_ok(manifest_parse(buf_str(&text), &manifest, &err), &err);
	for (size_t i = 0; i < SAMPLE_LAYERS; i++)
		assert_true(str_equal(manifest.layers[i].media_type, str_of(types[i])));
}

/* Names and LayerSources say one thing, bytes another; a zstd stream may begin with a frame to
 * skip. */
static void a_layer_is_what_its_bytes_are_whatever_an_archive_says(void **state)
{
	static const char *const types[SAMPLE_LAYERS] = {MEDIA_OCI_LAYER_ZSTD, MEDIA_OCI_LAYER_GZIP,
							 MEDIA_OCI_LAYER_ZSTD, MEDIA_OCI_LAYER_TAR};
	struct archives *archives = *state;
	struct digest config;
	struct err err = {0};

	sample_config_of(archives, &config);
	add_docker_list(archives, "null",
			"\"a.tar.gz\",\"b.tar\",\"c\",\"d.zst\"],\"LayerSources\":{\"x\":"
			"{\"mediaType\":\"" MEDIA_OCI_LAYER_TAR "\"}},\"Parents\":[");
	add_blob(archives, &config, "config.json");
	add_packed(archives, 0, "a.tar.gz", &codec_zstd, STR("\x5a\x2a\x4d\x18\4\0\0\0skip"));
	add_packed(archives, 1, "b.tar", &codec_gzip, STR(""));
	add_packed(archives, 2, "c", &codec_zstd, STR(""));
	add_blob(archives, &archives->pulling->image.layers[3], "d.zst");
	check_ok(run(archives, "docker-archive", &err), &err);
	check_layer_types(archives, types);
}

static void docker_archives_that_lie_are_refused(void **state)
{
	static const struct {
		const char *list;
		enum err_kind kind;
		const char *words;
	} cases[] = {
		{"{}", ERR_CORRUPT, "no list"},
		{"[]", ERR_NOT_FOUND, "holds no image"},
		{"[{}]", ERR_CORRUPT, "without Config"},
		{"nothing", ERR_CORRUPT, "manifest.json"},
		{"[{\"Config\":\"config.json\",\"Layers\":[]}]", ERR_CORRUPT, "0 layers"},
		{"[{\"Config\":\"../config.json\"}]", ERR_CORRUPT, "has no ../config.json"},
		{"[{\"Config\":\"config.json\",\"Layers\":[\"a\",\"b\",\"c\",\"d\"]}]", ERR_CORRUPT,
		 "layer 1: the archive has no a"},
		{"[{\"Config\":\"config.json\",\"Layers\":[1,2,3,4]}]", ERR_CORRUPT,
		 "without a name"},
		{"[{\"RepoTags\":[\"a:1\"]},{\"RepoTags\":[\"b:1\"]}]", ERR_INVALID, "a:1, b:1"},
		/* swapped layers are not those of the config */
		{"[{\"Config\":\"config.json\",\"Layers\":[\"1/layer.tar\",\"0/layer.tar\","
		 "\"2/layer.tar\",\"3/layer.tar\"]}]",
		 ERR_CORRUPT, "sha256:"},
	};
	struct archives *archives = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = {0};

		tarball_done(&archives->tar);
		tarball_init(&archives->tar);
		tarball_entry(&archives->tar, .name = "manifest.json",
			      .data = str_of(cases[i].list));
		add_docker_blobs(archives);
		check_err(run(archives, "docker-archive", &err), &err, cases[i].kind);
		if (!strstr(err.text, cases[i].words))
			fail_msg("%s: %s", cases[i].list, err.text);
		pulling_check_unnamed(archives->pulling);
	}
}

static void a_config_that_has_a_digest_for_a_name_is_held_to_it(void **state)
{
	static const size_t digits[] = {64, 128};
	struct archives *archives = *state;

	for (size_t i = 0; i < sizeof(digits) / sizeof(digits[0]); i++) {
		struct buf_sink out = BUF_SINK(&archives->tar.bytes);
		char list[256];
		char name[160];
		struct err err = {0};

		memset(name, 'a', digits[i]);
		(void)snprintf(name + digits[i], sizeof(name) - digits[i], ".json");
		(void)snprintf(list, sizeof(list), "[{\"Config\":\"%s\"}]", name);
		tarball_done(&archives->tar);
		tarball_init(&archives->tar);
		tarball_entry(&archives->tar, .name = "manifest.json", .data = str_of(list));
		check_ok(tar_out_file(&out.sink, name, STR("{}"), &err), &err);
		check_err(run(archives, "docker-archive", &err), &err, ERR_CORRUPT);
		assert_non_null(strstr(err.text, "is not what its name says"));
	}
}

static void the_other_kind_of_archive_is_named(void **state)
{
	struct archives *archives = *state;
	struct err err = {0};

	add_oci_index(archives, "");
	check_err(run(archives, "docker-archive", &err), &err, ERR_CORRUPT);
	assert_non_null(strstr(err.text, "oci-archive:"));
	tarball_done(&archives->tar);
	tarball_init(&archives->tar);
	add_docker_list(archives, "null", "");
	check_err(run(archives, "oci-archive", &err), &err, ERR_CORRUPT);
	assert_non_null(strstr(err.text, "docker-archive:"));
	archives->pulling->spec.any_archive = true;
	check_err(pulling_run(archives->pulling, &err), &err, ERR_CORRUPT);
	assert_non_null(strstr(err.text, "no config.json"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_oci_archive_arrives_whole_in_any_order),
		TEST(a_blob_that_is_not_there_is_told),
		TEST(what_is_not_its_digest_is_corrupt),
		TEST(a_docker_archive_arrives_with_its_names),
		TEST(a_given_name_wins),
		TEST(a_linked_layer_is_the_one_that_it_names),
		TEST(a_layer_is_what_its_bytes_are_whatever_an_archive_says),
		TEST(docker_archives_that_lie_are_refused),
		TEST(a_config_that_has_a_digest_for_a_name_is_held_to_it),
		TEST(the_other_kind_of_archive_is_named),
	};

	return cmocka_run_group_tests_name("registry/pull_archive", tests, NULL, NULL);
}
