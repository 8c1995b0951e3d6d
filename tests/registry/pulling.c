/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/registry/pulling.h"
#include "tests/layers/blobs.h"

#include <fcntl.h>
#include <stdarg.h>

static void pulling_event(void *ctx, const struct pull_event *event)
{
	struct pulling *pulling = ctx;

	if (event->kind == PULL_LAYER_DONE)
		pulling->fetched++;
	if (event->kind == PULL_LAYER_HELD)
		pulling->held++;
	assert_true(event->done <= event->size);
}

int pulling_new(void **state)
{
	struct store_options options = {.map_bytes = STORE_FIXTURE_MAP, .create = true};
	struct pulling *pulling = calloc(1, sizeof(*pulling));
	struct err err = {0};
	void *made = NULL;

	assert_non_null(pulling);
	assert_int_equal(store_fixture_open(&made), 0);
	pulling->made = made;
	(void)snprintf(pulling->layout, sizeof(pulling->layout), "%s/layout",
		       pulling->made->parent);
	(void)snprintf(pulling->path, sizeof(pulling->path), "%s/pulled", pulling->made->parent);
	options.path = pulling->path;
	check_ok(store_open(&options, &pulling->store, &err), &err);
	pulling->spec.reference = &pulling->reference;
	pulling->spec.event = pulling_event;
	pulling->spec.event_ctx = pulling;
	check_ok(platform_parse(STR("linux/amd64"), &pulling->spec.platform, &err), &err);
	*state = pulling;
	return 0;
}

int pulling_free(void **state)
{
	struct pulling *pulling = *state;
	void *made = pulling->made;

	store_close(pulling->store);
	free(pulling);
	return store_fixture_close(&made);
}

void pulling_refer(struct pulling *pulling, const char *fmt, ...)
{
	char text[512];
	struct err err = {0};
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	check_ok(reference_parse(str_of(text), &pulling->reference, &err), &err);
}

void pulling_make(struct pulling *pulling, enum sample_fault fault)
{
	sample_image_write(pulling->made->store, pulling->layout, "1.0", fault, &pulling->image);
	pulling_refer(pulling, "oci:%s:1.0", pulling->layout);
}

int pulling_run(struct pulling *pulling, struct err *err)
{
	pulling->fetched = pulling->held = 0;
	return pull_image(pulling->store, &pulling->spec, &pulling->tag, err);
}

static int pulling_find_tag(struct pulling *pulling, struct tag *out)
{
	auto_buf struct buf name = BUF_INIT(REFERENCE_TEXT_MAX);
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};
	int found;

	check_ok(reference_format(&pulling->reference, &name, &err), &err);
	check_ok(meta_begin(pulling->store, META_READ, &meta, &err), &err);
	found = tag_find(meta, buf_str(&name), &pulling->spec.platform, out, &err);
	check_ok(found, &err);
	return found;
}

static void pulling_check_blob(struct pulling *pulling, const struct descriptor *blob)
{
	struct blob_info info;
	struct err err = {0};

	assert_int_equal(blob_find(pulling->store, &blob->digest, &info, &err), 1);
	assert_true(info.size == blob->size);
	check_ok(blob_check(pulling->store, &blob->digest, &err), &err);
}

/* The file that every layer of a sample has. */
static void pulling_check_tree(struct pulling *pulling, const struct digest *diff_id)
{
	auto_close int fd = -1;
	char hex[DIGEST_HEX_MAX];
	char path[128];
	char text[16];
	struct err err = {0};

	assert_int_equal(tree_find(pulling->store, diff_id, &err), 1);
	(void)snprintf(path, sizeof(path), "%s/etc/layer", digest_hex(diff_id, hex));
	fd = openat(store_dirfd(pulling->store, STORE_TREES), path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, text, sizeof(text)), 8);
	assert_memory_equal(text, "layer ", 6);
}

void pulling_check_whole(struct pulling *pulling)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	auto_manifest struct manifest manifest = {0};
	struct err err = {0};
	struct tag tag;

	assert_int_equal(pulling_find_tag(pulling, &tag), 1);
	assert_true(digest_equal(&tag.manifest, &pulling->tag.manifest));
	assert_true(tag.pulled);
	check_ok(blob_read_all(pulling->store, &tag.manifest, &text, &err), &err);
	check_ok(manifest_parse(buf_str(&text), &manifest, &err), &err);
	assert_int_equal(manifest.layer_count, SAMPLE_LAYERS);
	pulling_check_blob(pulling, &manifest.config);
	for (size_t i = 0; i < SAMPLE_LAYERS; i++) {
		pulling_check_blob(pulling, &manifest.layers[i]);
		pulling_check_tree(pulling, &pulling->image.diff_ids[i]);
	}
}

void pulling_check_unnamed(struct pulling *pulling)
{
	struct tag tag;

	assert_int_equal(pulling_find_tag(pulling, &tag), 0);
}
