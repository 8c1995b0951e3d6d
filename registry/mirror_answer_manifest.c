/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/mirror_answer_priv.h"

#include "layers/blob.h"
#include "layers/use.h"
#include "registry/repository.h"

/* What is here already. */
struct held {
	bool held;
	bool fresh; /* the upstream need not be asked */
	struct digest digest;
	struct digest blob; /* the sha256 of the same bytes */
};

/* What a name stands for, and when the upstream said so. 1, 0 or -1. */
static int mirror_answer_manifest_find_tag(struct meta *meta, const struct v2_path *path,
					   const struct mirror_place *place, struct held *out,
					   struct err *err)
{
	struct mirror_tag tag;
	int found;

	if (path->by_digest) {
		out->digest = path->digest;
		out->fresh = true;
		return 1;
	}
	found = mirror_record_find_tag(meta, place->key, path->reference, &tag, err);
	if (found <= 0)
		return found;
	out->digest = tag.digest;
	out->fresh = mirror_is_fresh(place, tag.checked_ms);
	return 1;
}

static int mirror_answer_manifest_find(const struct v2_call *call, const struct mirror_place *place,
				       struct held *out, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	struct repository_item item = {.size = 0};
	struct blob_info info;
	int found;

	*out = (struct held){.held = false};
	if (meta_begin(call->v2->store, META_READ, &meta, err) < 0)
		return -1;
	found = mirror_answer_manifest_find_tag(meta, &call->path, place, out, err);
	if (found == 1)
		found = repository_find(meta, str_of(place->key), REPOSITORY_MANIFEST, &out->digest,
					&item, err);
	if (found == 1)
		found = blob_find(call->v2->store, &item.blob, &info, err);
	out->blob = item.blob;
	out->held = found == 1;
	return found < 0 ? -1 : 0;
}

void mirror_answer_manifest(struct v2_call *call, const struct mirror_place *place)
{
	struct mirror_wish wish = {.kind = call->path.by_digest ? MIRROR_MANIFEST : MIRROR_TAG,
				   .place = place,
				   .name = call->path.reference,
				   .digest = call->path.by_digest ? &call->path.digest : NULL};
	struct held held;
	struct err err;
	int result;

	if (mirror_answer_manifest_find(call, place, &held, &err) < 0) {
		v2_refuse_err(call->response, &err);
		return;
	}
	if (held.held)
		use_note(call->v2->store, &held.blob);
	if (held.held && held.fresh) {
		mirror_count_hit(call, place);
		mirror_serve(call, place, &held.digest);
		return;
	}
	result = mirror_visit_ask(call, &wish, held.held ? MIRROR_PATIENCE_MS : MIRROR_WAIT_MS,
				  &err);
	if (result == 1)
		mirror_serve(call, place, &mirror_visit_of(call)->task->digest);
	if (result == 0 || result == 1)
		return;
	if (!held.held || mirror_is_no(&err)) {
		mirror_refuse(call, place, &err);
		return;
	}
	mirror_mark_stale(call, place);
	mirror_serve(call, place, &held.digest);
}
