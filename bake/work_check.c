/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work_check.c - the role that compares layers with their tars and trees, as many
 * at a time as there are cores: one that is inflated by one thread leaves the
 * others to the next.
 */
#include "bake/convert_request.h"
#include "bake/work.h"
#include "bake/work_call.h"
#include "layers/base/array.h"
#include "layers/base/lock.h"
#include "layers/base/thread.h"
#include "layers/blob.h"
#include "layers/lease.h"
#include "layers/tree_check.h"

#include <stdatomic.h>

#define CHECK_LAYERS_MAX ((size_t)1024) /* of a request */
#define CHECK_THREADS_MAX ((size_t)4)

/*
 * A layer that is collected before or while it is read is no wrong tar: it
 * counts as the same. A collection removes its entry first.
 */
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
	struct store *store;
	const struct cancel *cancel;
	struct tree_check_spec *specs; /* owned */
	size_t count;
	atomic_size_t next;
	struct lock lock;
	/* guarded by lock: */
	json_t *answer;
	uint64_t tar_bytes;
	uint64_t tree_bytes;
	struct err why; /* of the first that failed */
};

/* Lack of room for a second look concerns this layer only: go on with the others. */
static int check_compare(struct store *store, const struct tree_check_spec *spec,
			 struct tree_check_result *out, const char **list, struct err *err)
{
	*list = NULL;
	if (tree_check(store, spec, out, err) < 0) {
		if (err->kind == ERR_FULL)
			*list = "unknown";
		return err->kind == ERR_FULL || err->kind == ERR_NOT_FOUND ? 0 : -1;
	}
	if (out->found == TREE_CHECK_OTHER_TAR &&
	    check_is_there(store, &spec->blob, &out->found, err) < 0)
		return -1;
	if (out->found != TREE_CHECK_SAME)
		*list = out->found == TREE_CHECK_DIFFERS ? "trees" : "tars";
	return 0;
}

static int check_one(struct check *check, size_t number, struct err *err)
{
	struct tree_check_result result = {.found = TREE_CHECK_SAME};
	const char *list;

	if (check_compare(check->store, &check->specs[number], &result, &list, err) < 0)
		return -1;
	lock_take(&check->lock);
	check->tar_bytes += result.tar_bytes;
	check->tree_bytes += result.tree_bytes;
	if (list)
		(void)json_array_append_new(json_object_get(check->answer, list),
					    json_integer((json_int_t)number));
	lock_drop(&check->lock);
	return 0;
}

static void *check_work(void *ctx)
{
	struct check *check = ctx;
	struct err err = {0};
	size_t number;

	while ((number = atomic_fetch_add(&check->next, 1)) < check->count) {
		if (check_one(check, number, &err) == 0)
			continue;
		lock_take(&check->lock);
		if (check->why.kind == ERR_NONE)
			check->why = err;
		lock_drop(&check->lock);
		atomic_store(&check->next, check->count);
	}
	return NULL;
}

static int check_all(struct check *check, struct err *err)
{
	pthread_t threads[CHECK_THREADS_MAX];
	size_t wanted = thread_cores(CHECK_THREADS_MAX);
	size_t started = 0;
	int result = 0;

	while (result == 0 && started < wanted && started < check->count) {
		result = thread_start(&threads[started], check_work, check, err);
		started += result == 0;
	}
	if (result < 0)
		atomic_store(&check->next, check->count);
	for (size_t i = 0; i < started; i++)
		(void)pthread_join(threads[i], NULL);
	if (result < 0 || check->why.kind == ERR_NONE)
		return result;
	*err = check->why;
	return -1;
}

static int check_add(void *ctx, size_t number, const json_t *item, struct variant_source *layer,
		     struct err *err)
{
	struct check *check = ctx;
	struct tree_check_spec spec = {
		.blob = layer->blob, .diff_id = layer->diff_id, .cancel = check->cancel};

	(void)number; /* they come in order */
	if (json_get_bool(item, "layers", "tree", &spec.tree, err) < 0 ||
	    array_make_room(&check->specs, sizeof(spec), check->count, CHECK_LAYERS_MAX, "layers",
			    err) < 0)
		return -1;
	check->specs[check->count++] = spec;
	return 0;
}

static int check_layers(struct work_call *call, struct check *check, struct err *err)
{
	AUTO(lease) struct lease *lease = NULL;

	if (work_need_root(err) < 0 || lease_open(call->store, &lease, err) < 0 ||
	    lease_rest(lease, err) < 0 ||
	    convert_layers_each(call->request, lease, check_add, check, err) < 0)
		return -1;
	return check_all(check, err);
}

/* Numbers of layers: whose `trees` differ, whose `tars` are others, of which it is `unknown`. */
static int check_answer(struct work_call *call, json_t **out, struct err *err)
{
	AUTO(json) json_t *answer = json_pack("{s:[], s:[], s:[]}", "trees", "tars", "unknown");
	struct check check = {
		.store = call->store, .cancel = &call->cancel, .answer = answer, .lock = LOCK_INIT};
	int result;

	if (!answer)
		abort();
	result = check_layers(call, &check, err);
	free(check.specs);
	if (result < 0)
		return -1;
	json_set_size(answer, "tarBytes", check.tar_bytes);
	json_set_size(answer, "treeBytes", check.tree_bytes);
	*out = steal_ptr(&answer);
	return 0;
}

int work_check(void)
{
	return work_call_run(check_answer);
}
