/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/inventory.h"

#include "layers/base/array.h"
#include "layers/blob.h"
#include "layers/digest_set.h"

#include <inttypes.h>

/* An inventory that is being taken. */
struct inventory_walk {
	struct store *store;
	struct inventory *out;
	struct digest_set met; /* names, since a blob of two is wanted by both */
};

/* 1 it is new; 0 it was met before; -1. A sha512 is in the set by its own digest. */
static int inventory_meet(struct inventory_walk *walk, const struct digest *name, struct err *err)
{
	struct digest member = *name;

	if (name->algorithm != DIGEST_SHA256)
		digest_of((struct str){(const char *)name->bytes, sizeof(name->bytes)}, &member);
	return digest_set_add(&walk->met, &member, err);
}

static int inventory_add(struct inventory *inventory, const struct digest *digest, uint64_t size,
			 struct err *err)
{
	if (array_make_room(&inventory->items, sizeof(*inventory->items), inventory->count,
			    INVENTORY_ITEMS_MAX, "blobs in an image", err) < 0)
		return -1;
	inventory->items[inventory->count++] = (struct inventory_item){*digest, size};
	return 0;
}

static int inventory_missing(const struct descriptor *what, struct err *err)
{
	char text[DIGEST_TEXT_MAX];

	return err_set(err, ERR_NOT_FOUND,
		       "the image names %s, which is not in the store; of an image of several "
		       "platforms pull all, or name one",
		       digest_format(&what->digest, text));
}

static int inventory_add_blob(struct inventory_walk *walk, const struct closure_item *item,
			      struct err *err)
{
	char text[DIGEST_TEXT_MAX];
	struct blob_info info;
	int found = blob_find(walk->store, &item->what.digest, &info, err);

	if (found == 0 && item->kind == CLOSURE_FOREIGN)
		return 0;
	if (found <= 0)
		return found < 0 ? -1 : inventory_missing(&item->what, err);
	if (info.size != item->what.size)
		return err_set(err, ERR_CORRUPT,
			       "%s has %" PRIu64 " bytes, the image says %" PRIu64,
			       digest_format(&item->what.digest, text), info.size, item->what.size);
	found = inventory_meet(walk, &item->what.digest, err);
	if (found <= 0)
		return found;
	return inventory_add(walk->out, &item->what.digest, info.size, err);
}

static int inventory_add_document(struct inventory_walk *walk, const struct digest *digest,
				  struct closure *out, size_t depth, struct err *err);

static int inventory_add_item(struct inventory_walk *walk, const struct closure_item *item,
			      size_t depth, struct err *err)
{
	auto_closure struct closure closure = {0};
	struct blob_info info;
	int found;

	if (item->kind != CLOSURE_DOCUMENT)
		return inventory_add_blob(walk, item, err);
	found = blob_find(walk->store, &item->what.digest, &info, err);
	if (found <= 0)
		return found < 0 ? -1 : inventory_missing(&item->what, err);
	return inventory_add_document(walk, &item->what.digest, &closure, depth + 1, err);
}

/* A document and all that it names. */
static int inventory_add_document(struct inventory_walk *walk, const struct digest *digest,
				  struct closure *out, size_t depth, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	int met;

	if (depth > INVENTORY_DEPTH_MAX)
		return err_set(err, ERR_LIMIT, "indexes in indexes, more than %d deep",
			       INVENTORY_DEPTH_MAX);
	met = inventory_meet(walk, digest, err);
	if (met <= 0)
		return met;
	if (blob_read_all(walk->store, digest, &text, err) < 0 ||
	    closure_parse(buf_str(&text), out, err) < 0)
		return -1;
	for (size_t i = 0; i < out->count; i++) {
		if (inventory_add_item(walk, &out->items[i], depth, err) < 0)
			return -1;
	}
	return inventory_add(walk->out, digest, text.len, err);
}

int inventory_read(struct store *store, const struct digest *image, struct inventory *out,
		   struct err *err)
{
	auto_inventory struct inventory inventory = {0};
	struct inventory_walk walk = {.store = store, .out = &inventory};
	int result = inventory_add_document(&walk, image, &inventory.image, 0, err);

	digest_set_done(&walk.met);
	if (result < 0)
		return -1;
	*out = inventory;
	inventory = (struct inventory){0};
	return 0;
}

void inventory_done(struct inventory *inventory)
{
	closure_done(&inventory->image);
	free(inventory->items);
	*inventory = (struct inventory){0};
}
