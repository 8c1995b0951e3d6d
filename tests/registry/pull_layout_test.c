/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/fd.h"
#include "tests/registry/pulling.h"

#include <fcntl.h>
#include <sys/stat.h>

/* The path of one of the layout's blobs. */
static const char *blob_path(const struct pulling *pulling, const struct digest *digest,
			     char path[static 256])
{
	char hex[DIGEST_HEX_MAX];

	(void)snprintf(path, 256, "%s/blobs/sha256/%s", pulling->layout, digest_hex(digest, hex));
	return path;
}

static void write_at(const char *path, const char *text, off_t at, int flags)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, text, strlen(text), at), (ssize_t)strlen(text));
}

static void a_layout_arrives_whole(void **state)
{
	struct pulling *pulling = *state;
	struct err err = {0};

	pulling_make(pulling, SAMPLE_FINE);
	check_ok(pulling_run(pulling, &err), &err);
	assert_int_equal(pulling->fetched, SAMPLE_LAYERS);
	assert_true(digest_equal(&pulling->tag.target, &pulling->image.manifest));
	pulling_check_whole(pulling);
}

static void what_is_held_is_not_read_again(void **state)
{
	struct pulling *pulling = *state;
	char path[256];
	struct err err = {0};

	pulling_make(pulling, SAMPLE_FINE);
	check_ok(pulling_run(pulling, &err), &err);
	for (size_t i = 0; i < SAMPLE_LAYERS; i++)
		assert_int_equal(unlink(blob_path(pulling, &pulling->image.layers[i], path)), 0);
	check_ok(pulling_run(pulling, &err), &err);
	assert_int_equal(pulling->fetched, 0);
	assert_int_equal(pulling->held, SAMPLE_LAYERS);
	pulling_check_whole(pulling);
}

static void lose_tree(struct pulling *pulling, const struct digest *diff_id)
{
	char hex[DIGEST_HEX_MAX];
	struct err err = {0};

	check_ok(store_discard(pulling->store, store_dirfd(pulling->store, STORE_TREES),
			       digest_hex(diff_id, hex), &err),
		 &err);
	assert_int_equal(tree_find(pulling->store, diff_id, &err), 0);
}

static void a_lost_tree_is_made_again_from_its_blob(void **state)
{
	struct pulling *pulling = *state;
	struct err err = {0};

	pulling_make(pulling, SAMPLE_FINE);
	check_ok(pulling_run(pulling, &err), &err);
	lose_tree(pulling, &pulling->image.diff_ids[1]);
	check_ok(pulling_run(pulling, &err), &err);
	assert_int_equal(pulling->fetched, 0);
	pulling_check_whole(pulling);
}

static void forget_tars(struct store *store, const struct sample_image *image)
{
	AUTO(meta) struct meta *meta = NULL;
	char key[DIGEST_TEXT_MAX];
	struct err err = {0};

	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	for (size_t i = 0; i < SAMPLE_LAYERS; i++)
		assert_int_equal(
			meta_del(meta, "tars", str_of(digest_format(&image->layers[i], key)), &err),
			1);
	check_ok(meta_commit(steal_ptr(&meta), &err), &err);
}

/* Blobs and trees are all held, and only who belongs to whom is a lie. */
static void held_layers_are_not_given_each_others_trees(void **state)
{
	struct pulling *pulling = *state;
	struct tag tag;
	struct err err = {0};

	pulling_make(pulling, SAMPLE_FINE);
	check_ok(pulling_run(pulling, &err), &err);
	tag = pulling->tag;
	for (int known = 1; known >= 0; known--) {
		pulling_make(pulling, SAMPLE_SWAPPED);
		check_err(pulling_run(pulling, &err), &err, ERR_CORRUPT);
		assert_non_null(strstr(err.text, "its tar is sha256:"));
		if (known)
			forget_tars(pulling->store, &pulling->image);
	}
	pulling_make(pulling, SAMPLE_FINE);
	check_ok(pulling_run(pulling, &err), &err);
	assert_int_equal(pulling->fetched, 0);
	assert_true(digest_equal(&pulling->tag.manifest, &tag.manifest));
	pulling_check_whole(pulling);
	forget_tars(pulling->store, &pulling->image); /* all of them are known again */
}

static void a_layer_that_is_listed_twice_is_read_once(void **state)
{
	struct pulling *pulling = *state;
	struct err err = {0};

	pulling_make(pulling, SAMPLE_TWICE);
	check_ok(pulling_run(pulling, &err), &err);
	assert_int_equal(pulling->fetched, SAMPLE_LAYERS - 1);
	pulling_check_whole(pulling);
}

static void faults_of_the_image_are_told(void **state)
{
	static const struct {
		enum sample_fault fault;
		enum err_kind kind;
		const char *words;
	} cases[] = {
		{SAMPLE_FEW_IDS, ERR_CORRUPT, "the manifest has 4 layers and the config 3"},
		{SAMPLE_WRONG_ID, ERR_CORRUPT, "layer sha256:"},
		{SAMPLE_FOR_ANOTHER, ERR_NOT_FOUND, "is for linux/s390x, and linux/amd64"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pulling *pulling;
		struct err err = {0};

		if (i > 0) {
			assert_int_equal(pulling_free(state), 0);
			assert_int_equal(pulling_new(state), 0);
		}
		pulling = *state;
		assert_non_null(pulling);
		pulling_make(pulling, cases[i].fault);
		check_err(pulling_run(pulling, &err), &err, cases[i].kind);
		if (!strstr(err.text, cases[i].words) || !strstr(err.text, "read oci:/"))
			fail_msg("%s", err.text);
		pulling_check_unnamed(pulling);
	}
}

/* The big layer, with one byte of its file's data changed. */
static void a_flipped_byte_is_corrupt(void **state)
{
	struct pulling *pulling = *state;
	struct blob_info info;
	char path[256];
	struct err err = {0};

	pulling_make(pulling, SAMPLE_FINE);
	write_at(blob_path(pulling, &pulling->image.layers[2], path), "!!", 1000000, 0);
	check_err(pulling_run(pulling, &err), &err, ERR_CORRUPT);
	pulling_check_unnamed(pulling);
	assert_int_equal(blob_find(pulling->store, &pulling->image.layers[2], &info, &err), 0);
	assert_int_equal(tree_find(pulling->store, &pulling->image.diff_ids[2], &err), 0);
}

static void a_truncated_blob_is_corrupt(void **state)
{
	struct pulling *pulling = *state;
	char path[256];
	struct err err = {0};

	pulling_make(pulling, SAMPLE_FINE);
	assert_int_equal(truncate(blob_path(pulling, &pulling->image.layers[2], path), 1000000), 0);
	check_err(pulling_run(pulling, &err), &err, ERR_CORRUPT);
	assert_non_null(strstr(err.text, "has 1000000 bytes"));
	pulling_check_unnamed(pulling);
}

static void a_manifest_that_was_changed_is_corrupt(void **state)
{
	struct pulling *pulling = *state;
	char path[256];
	struct err err = {0};

	pulling_make(pulling, SAMPLE_FINE);
	write_at(blob_path(pulling, &pulling->image.manifest, path), " ", 0, O_APPEND);
	check_err(pulling_run(pulling, &err), &err, ERR_CORRUPT);
}

static void links_and_fifos_are_no_blobs(void **state)
{
	struct pulling *pulling = *state;
	char path[256];
	struct err err = {0};

	pulling_make(pulling, SAMPLE_FINE);
	blob_path(pulling, &pulling->image.layers[0], path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	check_err(pulling_run(pulling, &err), &err, ERR_CORRUPT);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	check_err(pulling_run(pulling, &err), &err, ERR_CORRUPT);
	assert_int_equal(unlink(path), 0);
	check_err(pulling_run(pulling, &err), &err, ERR_NOT_FOUND);
	pulling_check_unnamed(pulling);
}

/* Give the layout a document, and make it what the layout's name stands for. */
static void put_document(struct pulling *pulling, struct str text, struct descriptor *out)
{
	auto_buf struct buf index = BUF_INIT(10000);
	char name[DIGEST_TEXT_MAX];
	char path[256];
	struct err err = {0};

	digest_of(text, &out->digest);
	out->size = text.len;
	write_at(blob_path(pulling, &out->digest, path), text.ptr, 0, 0);
	check_ok(buf_addf(&index, &err, "{\"manifests\":[{\"digest\":\"%s\",\"size\":1}]}",
			  digest_format(&out->digest, name)),
		 &err);
	(void)snprintf(path, sizeof(path), "%s/index.json", pulling->layout);
	write_at(path, index.ptr, 0, O_TRUNC);
	pulling_refer(pulling, "oci:%s", pulling->layout);
}

/* Put an index over the image, as a multi-platform layout has it. */
static void wrap_in_index(struct pulling *pulling, struct descriptor *out)
{
	auto_buf struct buf index = BUF_INIT(10000);
	auto_buf struct buf manifest = BUF_INIT(MANIFEST_MAX);
	char name[DIGEST_TEXT_MAX];
	struct err err = {0};

	check_ok(blob_read_all(pulling->made->store, &pulling->image.manifest, &manifest, &err),
		 &err);
	check_ok(buf_addf(&index, &err,
			  "{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":\"" MEDIA_OCI_MANIFEST
			  "\",\"digest\":\"%s\",\"size\":%zu,\"platform\":{\"os\":\"linux\","
			  "\"architecture\":\"amd64\"}}]}",
			  digest_format(&pulling->image.manifest, name), manifest.len),
		 &err);
	put_document(pulling, buf_str(&index), out);
}

/* Put an index over that one, beside an image of another platform that is not there. */
static void wrap_once_more(struct pulling *pulling, struct descriptor *inner)
{
	auto_buf struct buf index = BUF_INIT(10000);
	char name[DIGEST_TEXT_MAX];
	struct err err = {0};

	check_ok(buf_addf(&index, &err,
			  "{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":\"" MEDIA_OCI_INDEX
			  "\",\"digest\":\"%s\",\"size\":%zu},{\"digest\":\"sha256:%064d\","
			  "\"size\":9,"
			  "\"platform\":{\"os\":\"linux\",\"architecture\":\"s390x\"}}]}",
			  digest_format(&inner->digest, name), (size_t)inner->size, 0),
		 &err);
	put_document(pulling, buf_str(&index), inner);
}

static void an_index_is_kept_and_its_image_named(void **state)
{
	struct pulling *pulling = *state;
	struct blob_info info;
	struct descriptor index;
	struct err err = {0};

	pulling_make(pulling, SAMPLE_FINE);
	wrap_in_index(pulling, &index);
	check_ok(pulling_run(pulling, &err), &err);
	assert_true(digest_equal(&pulling->tag.target, &index.digest));
	assert_true(digest_equal(&pulling->tag.manifest, &pulling->image.manifest));
	assert_int_equal(blob_find(pulling->store, &index.digest, &info, &err), 1);
	pulling_check_whole(pulling);
}

static void an_image_is_found_in_an_index_in_an_index(void **state)
{
	struct pulling *pulling = *state;
	struct blob_info info;
	struct descriptor inner;
	struct descriptor outer;
	struct err err = {0};

	pulling_make(pulling, SAMPLE_FINE);
	wrap_in_index(pulling, &inner);
	outer = inner;
	wrap_once_more(pulling, &outer);
	check_ok(pulling_run(pulling, &err), &err);
	assert_true(digest_equal(&pulling->tag.target, &outer.digest));
	assert_true(digest_equal(&pulling->tag.manifest, &pulling->image.manifest));
	assert_int_equal(blob_find(pulling->store, &outer.digest, &info, &err), 1);
	assert_int_equal(blob_find(pulling->store, &inner.digest, &info, &err), 1);
	pulling_check_whole(pulling);
}

static void an_index_that_is_said_to_be_a_manifest_is_none(void **state)
{
	struct pulling *pulling = *state;
	auto_buf struct buf index = BUF_INIT(10000);
	struct descriptor inner;
	char name[DIGEST_TEXT_MAX];
	struct err err = {0};

	pulling_make(pulling, SAMPLE_FINE);
	wrap_in_index(pulling, &inner);
	check_ok(buf_addf(&index, &err,
			  "{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":\"" MEDIA_OCI_MANIFEST
			  "\",\"digest\":\"%s\",\"size\":%zu}]}",
			  digest_format(&inner.digest, name), (size_t)inner.size),
		 &err);
	put_document(pulling, buf_str(&index), &inner);
	check_err(pulling_run(pulling, &err), &err, ERR_CORRUPT);
	assert_non_null(strstr(err.text, "an index where the index says there is a manifest"));
}

static void indexes_in_indexes_have_a_ceiling(void **state)
{
	struct pulling *pulling = *state;
	struct descriptor index;
	struct err err = {0};

	pulling_make(pulling, SAMPLE_FINE);
	wrap_in_index(pulling, &index);
	for (int i = 0; i < 5; i++)
		wrap_once_more(pulling, &index);
	check_err(pulling_run(pulling, &err), &err, ERR_LIMIT);
	assert_non_null(strstr(err.text, "too many indexes in indexes"));
	pulling_check_unnamed(pulling);
}

static void no_image_for_a_platform_says_which_there_are(void **state)
{
	struct pulling *pulling = *state;
	struct descriptor index;
	struct err err = {0};

	pulling_make(pulling, SAMPLE_FINE);
	wrap_in_index(pulling, &index);
	check_ok(platform_parse(STR("linux/riscv64"), &pulling->spec.platform, &err), &err);
	check_err(pulling_run(pulling, &err), &err, ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "no image for linux/riscv64; there is linux/amd64"));
}

static void a_cancelled_pull_leaves_no_name(void **state)
{
	struct pulling *pulling = *state;
	struct cancel cancel;
	struct err err = {0};

	pulling_make(pulling, SAMPLE_FINE);
	check_ok(cancel_init(&cancel, &err), &err);
	cancel_raise(&cancel);
	pulling->spec.cancel = &cancel;
	check_err(pulling_run(pulling, &err), &err, ERR_CANCELLED);
	pulling_check_unnamed(pulling);
	cancel_done(&cancel);
}

/* Cancel as soon as it is known what to pull. */
static void cancel_when_resolved(void *ctx, const struct pull_event *event)
{
	if (event->kind == PULL_RESOLVED)
		cancel_raise(ctx);
}

static void a_cancel_stops_the_unpacking_of_what_is_held(void **state)
{
	struct pulling *pulling = *state;
	struct cancel cancel;
	struct err err = {0};

	pulling_make(pulling, SAMPLE_FINE);
	check_ok(pulling_run(pulling, &err), &err);
	lose_tree(pulling, &pulling->image.diff_ids[2]);
	check_ok(cancel_init(&cancel, &err), &err);
	pulling->spec.cancel = &cancel;
	pulling->spec.event = cancel_when_resolved;
	pulling->spec.event_ctx = &cancel;
	check_err(pulling_run(pulling, &err), &err, ERR_CANCELLED);
	assert_int_equal(tree_find(pulling->store, &pulling->image.diff_ids[2], &err), 0);
	cancel_done(&cancel);
}

static void nothing_is_nothing_to_pull(void **state)
{
	struct pulling *pulling = *state;
	struct err err = {0};

	pulling_refer(pulling, "scratch");
	check_err(pulling_run(pulling, &err), &err, ERR_INVALID);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, pulling_new, pulling_free)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_layout_arrives_whole),
		TEST(what_is_held_is_not_read_again),
		TEST(a_lost_tree_is_made_again_from_its_blob),
		TEST(held_layers_are_not_given_each_others_trees),
		TEST(a_layer_that_is_listed_twice_is_read_once),
		TEST(faults_of_the_image_are_told),
		TEST(a_flipped_byte_is_corrupt),
		TEST(a_truncated_blob_is_corrupt),
		TEST(a_manifest_that_was_changed_is_corrupt),
		TEST(links_and_fifos_are_no_blobs),
		TEST(an_index_is_kept_and_its_image_named),
		TEST(an_image_is_found_in_an_index_in_an_index),
		TEST(an_index_that_is_said_to_be_a_manifest_is_none),
		TEST(indexes_in_indexes_have_a_ceiling),
		TEST(no_image_for_a_platform_says_which_there_are),
		TEST(a_cancelled_pull_leaves_no_name),
		TEST(a_cancel_stops_the_unpacking_of_what_is_held),
		TEST(nothing_is_nothing_to_pull),
	};

	if (geteuid() != 0)
		return 125; /* trees have owners */
	return cmocka_run_group_tests_name("registry/pull_layout", tests, NULL, NULL);
}
