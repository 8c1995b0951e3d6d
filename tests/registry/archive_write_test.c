/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/fd.h"
#include "registry/docker_archive.h"
#include "registry/inventory.h"
#include "registry/oci_archive.h"
#include "registry/tar_out_priv.h"
#include "tests/registry/pulling.h"

#include <fcntl.h>

#define ARCHIVE_MAX (4 * SAMPLE_BIG)

static const char *archive_path(const struct pulling *pulling, char path[static 64])
{
	(void)snprintf(path, 64, "%s/out.tar", pulling->made->parent);
	return path;
}

static void keep_archive(const struct pulling *pulling, const struct buf *bytes)
{
	char path[64];
	auto_close int fd =
		open(archive_path(pulling, path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	struct err err = {0};

	assert_true(fd >= 0);
	check_ok(fd_write_all(fd, bytes->ptr, bytes->len, &err), &err);
}

static int write_oci(const struct pulling *pulling, const struct digest *image, struct buf *out,
		     struct err *err)
{
	const struct oci_archive_spec spec = {
		.image = *image, .tag = STR("1.0"), .name = STR("docker.io/acme/a:1")};
	struct buf_sink sink = BUF_SINK(out);

	return oci_archive_write(pulling->made->store, &spec, &sink.sink, err);
}

static int write_docker(const struct pulling *pulling, const struct digest *image, struct buf *out,
			struct err *err)
{
	AUTO(json) json_t *names = json_pack("[s]", "docker.io/acme/a:1");
	const struct docker_archive_spec spec = {.image = *image, .names = names};
	struct buf_sink sink = BUF_SINK(out);

	return docker_archive_write(pulling->made->store, &spec, &sink.sink, err);
}

static void an_oci_archive_gives_the_same_image_again(void **state)
{
	struct pulling *pulling = *state;
	auto_buf struct buf first = BUF_INIT(ARCHIVE_MAX);
	auto_buf struct buf second = BUF_INIT(ARCHIVE_MAX);
	char path[64];
	struct err err = {0};

	pulling_make(pulling, SAMPLE_FINE);
	check_ok(write_oci(pulling, &pulling->image.manifest, &first, &err), &err);
	check_ok(write_oci(pulling, &pulling->image.manifest, &second, &err), &err);
	assert_true(str_equal(buf_str(&first), buf_str(&second)));
	keep_archive(pulling, &first);
	pulling_refer(pulling, "oci-archive:%s:1.0", archive_path(pulling, path));
	check_ok(pulling_run(pulling, &err), &err);
	assert_true(digest_equal(&pulling->tag.manifest, &pulling->image.manifest));
	pulling_check_whole(pulling);
}

/* A layer that is listed twice lies there once. */
static void a_docker_archive_gives_the_same_layers_again(void **state)
{
	struct pulling *pulling = *state;
	auto_buf struct buf bytes = BUF_INIT(ARCHIVE_MAX);
	char path[64];
	struct err err = {0};

	pulling_make(pulling, SAMPLE_TWICE);
	check_ok(write_docker(pulling, &pulling->image.manifest, &bytes, &err), &err);
	keep_archive(pulling, &bytes);
	pulling_refer(pulling, "docker-archive:%s:acme/a:1", archive_path(pulling, path));
	check_ok(pulling_run(pulling, &err), &err);
	pulling_check_whole(pulling);
}

/* What was written is proven: the layer is not the one that its config names. */
static void a_layer_that_is_not_its_diff_id_is_not_written(void **state)
{
	struct pulling *pulling = *state;
	auto_buf struct buf bytes = BUF_INIT(ARCHIVE_MAX);
	struct err err = {0};

	pulling_make(pulling, SAMPLE_SWAPPED);
	check_err(write_docker(pulling, &pulling->image.manifest, &bytes, &err), &err, ERR_CORRUPT);
	assert_non_null(strstr(err.text, "is not the one that the config names"));
}

/* An index of the sample and of one that is not here. */
static void put_index(struct pulling *pulling, const char *more, struct digest *out)
{
	auto_buf struct buf text = BUF_INIT(4000);
	auto_buf struct buf manifest = BUF_INIT(MANIFEST_MAX);
	char digest[DIGEST_TEXT_MAX];
	struct err err = {0};

	check_ok(blob_read_all(pulling->made->store, &pulling->image.manifest, &manifest, &err),
		 &err);
	check_ok(buf_addf(&text, &err,
			  "{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_INDEX
			  "\",\"manifests\":[{\"mediaType\":\"" MEDIA_OCI_MANIFEST
			  "\",\"digest\":\"%s\",\"size\":%zu,\"platform\":{\"os\":\"linux\","
			  "\"architecture\":\"amd64\"}}%s]}",
			  digest_format(&pulling->image.manifest, digest), manifest.len, more),
		 &err);
	check_ok(blob_put(pulling->made->store, buf_str(&text), out, &err), &err);
}

static void an_index_goes_whole_or_not_at_all(void **state)
{
	struct pulling *pulling = *state;
	auto_buf struct buf bytes = BUF_INIT(ARCHIVE_MAX);
	struct digest index;
	char path[64];
	struct err err = {0};

	pulling_make(pulling, SAMPLE_FINE);
	put_index(pulling,
		  ",{\"mediaType\":\"" MEDIA_OCI_MANIFEST "\",\"digest\":\"sha256:"
		  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\",\"size\":5}",
		  &index);
	check_err(write_oci(pulling, &index, &bytes, &err), &err, ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "sha256:e3b0c44298fc1c149afb"));
	buf_clear(&bytes);
	put_index(pulling, "", &index);
	check_err(write_docker(pulling, &index, &bytes, &err), &err, ERR_INVALID);
	check_ok(write_oci(pulling, &index, &bytes, &err), &err);
	keep_archive(pulling, &bytes);
	pulling_refer(pulling, "oci-archive:%s", archive_path(pulling, path));
	check_ok(pulling_run(pulling, &err), &err);
	assert_true(digest_equal(&pulling->tag.target, &index));
	pulling_check_whole(pulling);
}

/* What is named comes first, and each once. */
static void an_inventory_lists_all_once(void **state)
{
	struct pulling *pulling = *state;
	auto_inventory struct inventory inventory = {0};
	struct digest index;
	struct err err = {0};

	pulling_make(pulling, SAMPLE_TWICE);
	put_index(pulling, "", &index);
	check_ok(inventory_read(pulling->made->store, &index, &inventory, &err), &err);
	assert_int_equal(inventory.count, SAMPLE_LAYERS - 1 + 3);
	assert_true(digest_equal(&inventory_image(&inventory)->digest, &index));
	assert_true(digest_equal(&inventory.items[inventory.count - 2].digest,
				 &pulling->image.manifest));
}

/* Beyond eight octal digits a size is written in binary, as GNU tar and libarchive read it. */
static void sizes_of_more_than_eight_gigabytes_are_written(void **state)
{
	auto_buf struct buf header = BUF_INIT(1024);
	struct buf_sink sink = BUF_SINK(&header);
	struct err err = {0};

	(void)state;
	check_ok(tar_out_begin_file(&sink.sink, "a", (uint64_t)8 << 30, &err), &err);
	assert_int_equal(header.len, 512);
	assert_memory_equal(header.ptr + 124, "\x80\0\0\0\0\0\0\x02\0\0\0\0", 12);
	buf_clear(&header);
	check_ok(tar_out_begin_file(&sink.sink, "a", ((uint64_t)8 << 30) - 1, &err), &err);
	assert_memory_equal(header.ptr + 124, "77777777777", 12);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, pulling_new, pulling_free)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_oci_archive_gives_the_same_image_again),
		TEST(a_docker_archive_gives_the_same_layers_again),
		TEST(a_layer_that_is_not_its_diff_id_is_not_written),
		TEST(an_index_goes_whole_or_not_at_all),
		TEST(an_inventory_lists_all_once),
		cmocka_unit_test(sizes_of_more_than_eight_gigabytes_are_written),
	};

	return cmocka_run_group_tests_name("registry/archive_write", tests, NULL, NULL);
}
