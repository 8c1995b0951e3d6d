/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/work_trees_priv.h"

#include "layers/receive.h"

static int trees_name(struct lease *lease, const struct task_layer *layers, size_t count,
		      struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		if (lease_add(lease, &layers[i].blob, err) < 0 ||
		    lease_add(lease, &layers[i].diff_id, err) < 0)
			return -1;
	}
	return 0;
}

int work_trees_hold(struct store *store, const struct task *task, struct lease **out,
		    struct err *err)
{
	AUTO(lease) struct lease *lease = NULL;

	if (lease_open(store, &lease, err) < 0 ||
	    trees_name(lease, task->layers, task->layer_count, err) < 0)
		return -1;
	for (size_t i = 0; i < task->image_count; i++) {
		if (trees_name(lease, task->images[i].layers, task->images[i].layer_count, err) < 0)
			return -1;
	}
	if (lease_add(lease, &task->key, err) < 0 || lease_rest(lease, err) < 0)
		return -1;
	*out = steal_ptr(&lease);
	return 0;
}

static int trees_make_all(struct store *store, const struct task_layer *layers, size_t count,
			  const struct cancel *cancel, struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		struct receive_spec spec = {
			.blob = layers[i].blob,
			.size = layers[i].size,
			.diff_id = layers[i].diff_id,
			.cancel = cancel,
			.limits.max_bytes = UINT64_MAX, /* it was small enough when it came */
		};

		if (receive_have_tree(store, &spec, err) < 0)
			return err_ctx(err, "layer %zu", i + 1);
	}
	return 0;
}

int work_trees_make(struct store *store, const struct task *task, const struct cancel *cancel,
		    struct err *err)
{
	if (trees_make_all(store, task->layers, task->layer_count, cancel, err) < 0)
		return -1;
	for (size_t i = 0; i < task->image_count; i++) {
		const struct task_image *image = &task->images[i];

		if (trees_make_all(store, image->layers, image->layer_count, cancel, err) < 0)
			return err_ctx(err, "image");
	}
	return 0;
}
