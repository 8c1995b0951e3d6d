/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/mirror_priv.h"

#include "layers/base/clock.h"
#include "layers/blob.h"
#include "registry/outline.h"

#define HOLD_LOOK_BYTES ((uint64_t)16 * 1024 * 1024) /* of manifests are read for a size */
#define HOLD_LOOK_LEAST ((uint64_t)16 * 1024)        /* that each of them counts for */

int mirror_holds(const struct mirror *mirror, const struct mirror_place *place,
		 enum repository_kind kind, const struct digest *digest,
		 struct repository_item *out, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	struct blob_info info;
	int found;

	if (meta_begin(mirror->options.store, META_READ, &meta, err) < 0)
		return -1;
	found = repository_find(meta, str_of(place->key), kind, digest, out, err);
	return found == 1 ? blob_find(mirror->options.store, &out->blob, &info, err) : found;
}

struct hold_search {
	struct store *store;
	const struct digest *blob;
	uint64_t size;
	uint64_t left; /* bytes that may be read still */
};

/* 1 it names the blob, or enough of them do not. */
static int mirror_hold_search(void *ctx, struct str repository, const struct repository_item *item,
			      struct err *err)
{
	struct hold_search *search = ctx;
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	auto_outline struct outline outline = {0};
	uint64_t cost = item->size > HOLD_LOOK_LEAST ? item->size : HOLD_LOOK_LEAST;
	struct err ignored;

	(void)repository, (void)err; /* the shape of repository_each_fn */
	if (search->left < cost)
		return 1;
	search->left -= cost;
	if (blob_read_all(search->store, &item->blob, &text, &ignored) < 0 ||
	    outline_parse(buf_str(&text), &outline, &ignored) < 0)
		return 0;
	for (size_t i = 0; i < outline.count; i++) {
		if (!digest_equal(&outline.items[i].what.digest, search->blob))
			continue;
		search->size = outline.items[i].what.size;
		return 1;
	}
	return 0;
}

int mirror_hold_size(const struct mirror *mirror, const struct mirror_place *place,
		     const struct digest *blob, uint64_t *out, struct err *err)
{
	struct hold_search search = {.store = mirror->options.store,
				     .blob = blob,
				     .size = MIRROR_SIZE_UNKNOWN,
				     .left = HOLD_LOOK_BYTES};
	AUTO(meta) struct meta *meta = NULL;

	if (meta_begin(mirror->options.store, META_READ, &meta, err) < 0 ||
	    repository_each_in(meta, str_of(place->key), REPOSITORY_MANIFEST, mirror_hold_search,
			       &search, err) < 0)
		return -1;
	*out = search.size;
	return search.size != MIRROR_SIZE_UNKNOWN;
}

bool mirror_is_fresh(const struct mirror_place *place, int64_t checked_ms)
{
	int64_t age_ms = clock_now_ms() - checked_ms;

	return age_ms >= 0 && age_ms < place->upstream->tag_ttl_ms;
}
