/* SPDX-License-Identifier: Apache-2.0 */
/* bake_lease.c - what a bake has found, named in its lease before it rests. */
#include "bake/bake_priv.h"
#include "bake/gc.h"

static int bake_name_layers(struct bake *bake, struct lease *lease, struct err *err)
{
	for (; bake->named_layers < bake->state.layer_count; bake->named_layers++) {
		const struct state_layer *layer = &bake->state.layers[bake->named_layers];

		if (lease_add(lease, &layer->blob, err) < 0 ||
		    lease_add(lease, &layer->diff_id, err) < 0)
			return -1;
	}
	return 0;
}

/* With their keys: logs and explanations of this image are found by them. */
static int bake_name_steps(struct bake *bake, struct lease *lease, struct err *err)
{
	static const struct digest none;

	for (; bake->named_steps < bake->step; bake->named_steps++) {
		const struct digest *key = &bake->keys[bake->named_steps];

		if (!digest_equal(key, &none) && lease_add(lease, key, err) < 0)
			return -1;
	}
	return 0;
}

int bake_name_held(struct bake *bake, struct err *err)
{
	struct lease *lease = bake->options->lease;
	static const struct digest scratch;

	if (!lease)
		return 0;
	if (bake->named_layers == 0 && !digest_equal(&bake->base, &scratch) &&
	    lease_add(lease, &bake->base, err) < 0)
		return -1;
	if (bake_name_layers(bake, lease, err) < 0)
		return -1;
	return bake_name_steps(bake, lease, err);
}

int bake_name_image(struct bake *bake, const struct from *from, struct err *err)
{
	struct lease *lease = bake->options->lease;

	for (size_t i = 0; lease && i < from->layer_count; i++) {
		if (lease_add(lease, &from->layers[i].blob, err) < 0 ||
		    lease_add(lease, &from->layers[i].diff_id, err) < 0)
			return -1;
	}
	return 0;
}

int bake_rest(struct bake *bake, struct err *err)
{
	struct lease *lease = bake->options->lease;

	bake_end_snapshot(bake);
	if (!lease)
		return 0;
	if (bake_name_held(bake, err) < 0 || lease_rest(lease, err) < 0)
		return -1;
	return gc_make_room(bake->options->store, bake->options->gc, bake->options->cancel, err);
}

int bake_resume(struct bake *bake, struct err *err)
{
	return bake->options->lease ? lease_resume(bake->options->lease, err) : 0;
}
