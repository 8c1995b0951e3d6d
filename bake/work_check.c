/* SPDX-License-Identifier: Apache-2.0 */
/* work_check.c - the role that compares layers with their tars and trees. */
#include "bake/convert_request.h"
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

struct check {
	struct work_call *call;
	json_t *answer; /* numbers of layers: `trees` that differ, `tars` that are others */
};

static int check_layer(void *ctx, size_t number, const json_t *item, struct variant_source *layer,
		       struct err *err)
{
	const struct check *check = ctx;
	struct store *store = check->call->store;
	struct tree_check_spec spec = {
		.blob = layer->blob, .diff_id = layer->diff_id, .cancel = &check->call->cancel};
	enum tree_check found = TREE_CHECK_SAME;

	if (json_get_bool(item, "layers", "tree", &spec.tree, err) < 0 ||
	    (tree_check(store, &spec, &found, err) < 0 && err->kind != ERR_NOT_FOUND) ||
	    (found == TREE_CHECK_OTHER_TAR && check_is_there(store, &spec.blob, &found, err) < 0))
		return -1;
	if (found == TREE_CHECK_SAME)
		return 0;
	(void)json_array_append_new(
		json_object_get(check->answer, found == TREE_CHECK_DIFFERS ? "trees" : "tars"),
		json_integer((json_int_t)number));
	return 0;
}

static int check_answer(struct work_call *call, json_t **out, struct err *err)
{
	AUTO(json) json_t *answer = json_pack("{s:[], s:[]}", "trees", "tars");
	struct check check = {call, answer};
	AUTO(lease) struct lease *lease = NULL;

	if (!answer)
		abort();
	if (work_need_root(err) < 0 || lease_open(call->store, &lease, err) < 0 ||
	    lease_rest(lease, err) < 0 ||
	    convert_layers_each(call->request, lease, check_layer, &check, err) < 0)
		return -1;
	*out = steal_ptr(&answer);
	return 0;
}

int work_check(void)
{
	return work_call_run(check_answer);
}
