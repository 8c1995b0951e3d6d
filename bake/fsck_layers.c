/* SPDX-License-Identifier: Apache-2.0 */
/* fsck_layers.c - every layer is inflated, and its tree compared, by workers. */
#include "bake/fsck_priv.h"

#include "bake/asker.h"
#include "bake/convert_request.h"
#include "layers/base/array.h"
#include "layers/blob.h"
#include "layers/proof.h"
#include "layers/step.h"
#include "registry/document.h"

#define LAYERS_BATCH ((size_t)128) /* of one worker */

struct layer_item {
	struct digest blob;
	struct digest diff_id;
	struct digest key; /* of the step whose record names it, or all zero */
	bool tree;         /* the first of its diff id */
};

struct layer_items {
	struct fsck *fsck;
	struct layer_item *at; /* owned */
	size_t count;
	struct digest_set blobs;    /* that are among them */
	struct digest_set diff_ids; /* that are */
};

static int items_add(struct layer_items *items, const struct layer_item *item, struct err *err)
{
	struct layer_item *added;
	struct blob_info info;
	int fresh = blob_find(items->fsck->options->store, &item->blob, &info, err);

	if (fresh == 1)
		fresh = digest_set_add(&items->blobs, &item->blob, err);
	if (fresh <= 0)
		return fresh;
	/* at most as many as there are in the set */
	items->at = array_grow(items->at, items->count, sizeof(*items->at));
	added = &items->at[items->count++];
	*added = *item;
	fresh = digest_set_add(&items->diff_ids, &item->diff_id, err);
	added->tree = fresh == 1;
	return fresh < 0 ? -1 : 0;
}

static int items_add_step(void *ctx, const struct step_record *record, struct err *err)
{
	const struct layer_item item = {
		.blob = record->blob, .diff_id = record->diff_id, .key = record->key};

	return record->empty ? 0 : items_add(ctx, &item, err);
}

static int items_add_proof(void *ctx, const struct digest *blob, const struct digest *diff_id,
			   struct err *err)
{
	const struct layer_item item = {.blob = *blob, .diff_id = *diff_id};

	return items_add(ctx, &item, err);
}

static int items_read(struct layer_items *items, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;

	if (meta_begin(items->fsck->options->store, META_READ, &meta, err) < 0 ||
	    step_each(meta, items_add_step, items, err) < 0)
		return -1;
	return proof_each(meta, items_add_proof, items, err);
}

static json_t *items_request(const struct layer_items *items, size_t from, size_t count)
{
	struct store *store = items->fsck->options->store;
	json_t *request = asker_request_new(store);
	json_t *layers = json_array();

	for (size_t i = from; i < from + count; i++) {
		const struct state_layer layer = {.blob = items->at[i].blob,
						  .diff_id = items->at[i].diff_id};
		json_t *value = convert_layer_format(&layer);

		json_set_bool(value, "tree", items->at[i].tree);
		(void)json_array_append_new(layers, value);
	}
	(void)json_object_set_new(request, "layers", layers);
	return request;
}

/* Those who work with it keep what they have open; the next one makes it again. */
static int layers_drop_tree(struct fsck *fsck, const struct digest *diff_id, struct err *err)
{
	const struct collect_options options = {.names = document_names,
						.cancel = fsck->options->cancel};
	AUTO(collector) struct collector *collector = NULL;
	uint64_t bytes;

	if (collect_open(fsck->options->store, &options, &collector, err) < 0)
		return -1;
	return collect_tree(collector, diff_id, &bytes, err);
}

static int layers_find_tree(struct fsck *fsck, const struct layer_item *item, struct err *err)
{
	struct fsck_finding finding = {FSCK_TREE, item->diff_id, "",
				       "differs from its layer, and is made again when needed"};
	int removed = 1;

	if (fsck_mends(fsck))
		removed = layers_drop_tree(fsck, &item->diff_id, err);
	if (removed < 0)
		return -1;
	if (removed == 0)
		finding.text = "differs from its layer, and is in use: check again";
	fsck_find(fsck, &finding);
	return 0;
}

static int layers_find_tar(struct fsck *fsck, const struct layer_item *item, struct err *err)
{
	static const struct digest none;
	bool by_step = !digest_equal(&item->key, &none);
	const struct fsck_finding finding = {by_step ? FSCK_STEP : FSCK_RECORD,
					     by_step ? item->key : item->blob, "",
					     "its layer is another tar than the record says"};
	AUTO(meta) struct meta *meta = NULL;

	fsck_find(fsck, &finding);
	if (!fsck_mends(fsck))
		return 0;
	if (meta_begin(fsck->options->store, META_WRITE, &meta, err) < 0 ||
	    (by_step && step_remove(meta, &item->key, err) < 0) ||
	    proof_remove(meta, &item->blob, err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}

static int layers_find_unknown(struct fsck *fsck, const struct layer_item *item, struct err *err)
{
	const struct fsck_finding finding = {
		FSCK_TREE_UNKNOWN, item->diff_id, "",
		"has no room beside it to be compared: make some (hearth gc), and check again"};

	(void)err;
	fsck_find(fsck, &finding);
	return 0;
}

typedef int layers_find_fn(struct fsck *fsck, const struct layer_item *item, struct err *err);

static int layers_hear(struct layer_items *items, size_t from, const json_t *answer,
		       const char *what, layers_find_fn *find, struct err *err)
{
	json_t *list;
	json_t *number;
	size_t i;

	if (json_need_array(answer, "", what, &list, err) < 0)
		return -1;
	json_array_foreach(list, i, number)
	{
		size_t at = from + (size_t)json_integer_value(number);

		if (at < items->count && find(items->fsck, &items->at[at], err) < 0)
			return -1;
	}
	return 0;
}

static int layers_count(struct fsck_result *result, const json_t *answer, struct err *err)
{
	int64_t tar;
	int64_t tree;

	if (json_need_int(answer, "", "tarBytes", &tar, err) < 0 ||
	    json_need_int(answer, "", "treeBytes", &tree, err) < 0)
		return -1;
	result->tar_bytes += (uint64_t)tar;
	result->tree_bytes += (uint64_t)tree;
	return 0;
}

static int layers_check(struct layer_items *items, size_t from, struct err *err)
{
	const struct fsck_options *options = items->fsck->options;
	size_t left = items->count - from;
	AUTO(json)
	json_t *request = items_request(items, from, left < LAYERS_BATCH ? left : LAYERS_BATCH);
	AUTO(json) json_t *answer = NULL;
	const struct asker asker = {.store = options->store,
				    .worker_path = options->worker_path,
				    .cancel = options->cancel};

	if (asker_call(&asker, "check", request, &answer, err) < 0 ||
	    layers_hear(items, from, answer, "trees", layers_find_tree, err) < 0 ||
	    layers_hear(items, from, answer, "unknown", layers_find_unknown, err) < 0 ||
	    layers_hear(items, from, answer, "tars", layers_find_tar, err) < 0)
		return -1;
	return layers_count(&items->fsck->result, answer, err);
}

int fsck_layers(struct fsck *fsck, struct err *err)
{
	struct layer_items items = {.fsck = fsck};
	int result = items_read(&items, err);

	fsck->sure = true; /* a worker leases layers, and holds trees, while it looks at them */
	for (size_t i = 0; result == 0 && i < items.count; i += LAYERS_BATCH)
		result = layers_check(&items, i, err);
	free(items.at);
	digest_set_done(&items.blobs);
	digest_set_done(&items.diff_ids);
	return result;
}
