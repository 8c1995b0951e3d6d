/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inventory.h - everything in the store that an image is: its blobs and
 * documents, those of an index for all of its platforms.
 *
 * What is named comes before what names it, each once, so the image itself is
 * the last. Layers that are not distributed are left out where they are not
 * held.
 */
#pragma once

#include "layers/store.h"
#include "registry/closure.h"

#define INVENTORY_DEPTH_MAX 4 /* of indexes in indexes */
#define INVENTORY_ITEMS_MAX ((size_t)100000)

struct inventory_item {
	struct digest digest; /* as the image names it */
	uint64_t size;        /* bytes */
};

struct inventory {
	struct inventory_item *items; /* owned */
	size_t count;
	struct closure image; /* the last item's */
};

/* ERR_NOT_FOUND for what the store lacks; ERR_CORRUPT; ERR_LIMIT. */
int inventory_read(struct store *store, const struct digest *image, struct inventory *out,
		   struct err *err) MUST_CHECK;
void inventory_done(struct inventory *inventory);

/* The image itself. */
static inline const struct inventory_item *inventory_image(const struct inventory *inventory)
{
	return &inventory->items[inventory->count - 1];
}

static inline void auto_inventory_release(struct inventory *slot)
{
	inventory_done(slot);
}
#define auto_inventory AUTO(inventory)
