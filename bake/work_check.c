/* SPDX-License-Identifier: Apache-2.0 */
/* work_check.c - the role that compares layers with their tars and trees. */
#include "bake/convert_request.h"
#include "bake/fsck_priv.h"
#include "bake/work.h"
#include "bake/work_call.h"
#include "layers/blob.h"
#include "layers/lease.h"
#include "layers/tree_check.h"

/* A layer that is collected before or while it is read is no other tar: its entry goes first. */
static int check_is_there(struct store *store, const struct digest *blob, enum tree_check *out,
			  struct err *err)
{
	struct blob_info info;
	int found = blob_find(store, blob, &info, err);

	if (found == 0)
		*out = TREE_CHECK_SAME;
	return found < 0 ? -1 : 0;
}

static int check_layer(struct work_call *call, struct lease *lease, const json_t *item,
		       enum tree_check *out, struct err *err)
{
	struct variant_source source;
	struct tree_check_spec spec = {.cancel = &call->cancel};

	if (convert_layer_parse(item, &source, err) < 0 ||
	    json_get_bool(item, "layers", "tree", &spec.tree, err) < 0 ||
	    lease_add(lease, &source.blob, err) < 0 || lease_add(lease, &source.diff_id, err) < 0)
		return -1;
	spec.blob = source.blob;
	spec.diff_id = source.diff_id;
	*out = TREE_CHECK_SAME;
	if (tree_check(call->store, &spec, out, err) < 0 && err->kind != ERR_NOT_FOUND)
		return -1;
	return *out == TREE_CHECK_OTHER_TAR ? check_is_there(call->store, &spec.blob, out, err) : 0;
}

static int check_layers(struct work_call *call, struct lease *lease, json_t *answer,
			struct err *err)
{
	json_t *layers;
	json_t *item;
	size_t i;

	if (json_need_array(call->request, "", "layers", &layers, err) < 0)
		return -1;
	json_array_foreach(layers, i, item)
	{
		enum tree_check found;

		if (check_layer(call, lease, item, &found, err) < 0)
			return -1;
		if (found == TREE_CHECK_SAME)
			continue;
		(void)json_array_append_new(
			json_object_get(answer, found == TREE_CHECK_DIFFERS ? "trees" : "tars"),
			json_integer((json_int_t)i));
	}
	return 0;
}

static int check_answer(struct work_call *call, json_t **out, struct err *err)
{
	AUTO(json) json_t *answer = json_pack("{s:[], s:[]}", "trees", "tars");
	AUTO(lease) struct lease *lease = NULL;

	if (!answer)
		abort();
	if (work_need_root(err) < 0 || lease_open(call->store, &lease, err) < 0 ||
	    lease_rest(lease, err) < 0 || check_layers(call, lease, answer, err) < 0)
		return -1;
	*out = steal_ptr(&answer);
	return 0;
}

int work_check(void)
{
	return work_call_run(check_answer);
}
