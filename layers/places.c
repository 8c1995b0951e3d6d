/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/places_priv.h"

#include "layers/base/array.h"

struct places_walk {
	struct places *places;
	uint32_t owner;
};

static int places_add(void *ctx, const struct blob_chunk *chunk, struct err *err)
{
	const struct places_walk *walk = ctx;
	struct places *places = walk->places;
	struct place *place;

	if (array_make_room(&places->at, sizeof(*place), places->count, PLACES_MAX,
			    "chunks in all blobs", err) < 0)
		return -1;
	place = &places->at[places->count++];
	memcpy(place->id, chunk->id.bytes, sizeof(place->id));
	place->size = chunk->size;
	place->owner = walk->owner;
	return 0;
}

int places_add_blob(struct places *places, const struct store_blobs *blobs, MDB_txn *txn,
		    const struct blob_entry *entry, uint32_t owner, struct err *err)
{
	struct places_walk walk = {places, owner};

	return blob_list_each(blobs, txn, entry, places_add, &walk, err);
}

static int places_compare(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(((const struct place *)a)->id));
}

void places_sort(struct places *places)
{
	if (places->count > 0)
		qsort(places->at, places->count, sizeof(*places->at), places_compare);
}

size_t places_same(const struct places *places, size_t at)
{
	size_t end = at;

	while (end < places->count && places_compare(&places->at[at], &places->at[end]) == 0)
		end++;
	return end - at;
}

void places_done(struct places *places)
{
	free(places->at);
	*places = (struct places){0};
}
