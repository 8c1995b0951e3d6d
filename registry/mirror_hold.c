/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/mirror_priv.h"

#include "layers/base/clock.h"
#include "layers/blob.h"

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

bool mirror_is_fresh(const struct mirror_place *place, int64_t checked_ms)
{
	int64_t age_ms = clock_now_ms() - checked_ms;

	return age_ms >= 0 && age_ms < place->upstream->tag_ttl_ms;
}
