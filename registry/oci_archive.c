/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/oci_archive.h"

#include "layers/base/cancel.h"
#include "layers/base/thread.h"
#include "layers/blob.h"
#include "registry/inventory.h"
#include "registry/layout_priv.h"
#include "registry/tar_out_priv.h"

static int oci_archive_index(const struct inventory *inventory, const struct oci_archive_spec *spec,
			     struct sink *out, struct err *err)
{
	const struct descriptor self = {inventory->image.media_type, spec->image,
					inventory_image(inventory)->size};
	auto_buf struct buf text = BUF_INIT(LAYOUT_INDEX_MAX);
	AUTO(json) json_t *document = layout_new_index();

	(void)json_array_append_new(json_object_get(document, "manifests"),
				    layout_entry(&self, spec->tag, spec->name));
	if (json_format(document, &text, err) < 0)
		return -1;
	return tar_out_file(out, "index.json", buf_str(&text), err);
}

/*
 * Hashing is as much work as writing, so another thread does it: it reads the
 * same pages of the store at the same time.
 */
struct archive_check {
	struct store *store;
	const struct inventory *inventory;
	struct cancel stop; /* raised when the writer failed */
	pthread_t thread;
	struct err err; /* ERR_NONE when all was right; read after the join */
};

static void *archive_check_run(void *ctx)
{
	struct archive_check *check = ctx;
	const struct inventory *inventory = check->inventory;

	for (size_t i = 0; i < inventory->count; i++) {
		if (blob_check_digest(check->store, &inventory->items[i].digest, &check->stop,
				      &check->err) < 0)
			break;
	}
	return NULL;
}

static int oci_archive_bytes(struct store *store, const struct digest *digest, struct sink *out,
			     struct err *err)
{
	AUTO(blob_reader) struct blob_reader *reader = NULL;
	struct str bytes;
	int more;

	if (blob_reader_open(store, digest, &reader, err) < 0)
		return -1;
	while ((more = blob_reader_next(reader, &bytes, NULL, err)) == 1) {
		if (out->write(out, bytes, err) < 0)
			return -1;
	}
	return more;
}

static int oci_archive_blobs(struct store *store, const struct inventory *inventory,
			     struct sink *out, struct err *err)
{
	char name[LAYOUT_BLOB_NAME_MAX];

	for (size_t i = 0; i < inventory->count; i++) {
		const struct inventory_item *item = &inventory->items[i];

		layout_blob_name(&item->digest, name);
		if (tar_out_begin_file(out, name, item->size, err) < 0 ||
		    oci_archive_bytes(store, &item->digest, out, err) < 0 ||
		    tar_out_end_file(out, item->size, err) < 0)
			return -1;
	}
	return 0;
}

static int oci_archive_checked(struct store *store, const struct inventory *inventory,
			       struct sink *out, struct err *err)
{
	struct archive_check check = {.store = store, .inventory = inventory};
	int result;

	if (cancel_init(&check.stop, err) < 0)
		return -1;
	result = thread_start(&check.thread, archive_check_run, &check, err);
	if (result == 0) {
		result = oci_archive_blobs(store, inventory, out, err);
		if (result < 0)
			cancel_raise(&check.stop);
		(void)pthread_join(check.thread, NULL);
	}
	cancel_done(&check.stop);
	if (result == 0 && check.err.kind != ERR_NONE) {
		*err = check.err;
		return -1;
	}
	return result;
}

int oci_archive_write(struct store *store, const struct oci_archive_spec *spec, struct sink *out,
		      struct err *err)
{
	auto_inventory struct inventory inventory = {0};

	if (inventory_read(store, &spec->image, &inventory, err) < 0 ||
	    tar_out_file(out, "oci-layout", STR(LAYOUT_VERSION), err) < 0 ||
	    oci_archive_index(&inventory, spec, out, err) < 0 ||
	    oci_archive_checked(store, &inventory, out, err) < 0)
		return -1;
	return tar_out_end(out, err);
}
