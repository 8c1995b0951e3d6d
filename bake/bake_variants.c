/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bake_variants.c - the image's own layers in the codec that the spec asks for.
 *
 * A step's record serves bakes of either codec, so its layer may be of the
 * other one. Then its variant stands in: one that is remembered, or one that a
 * worker makes of the stored layer. The base's layers stay as they came.
 */
#include "bake/bake_priv.h"
#include "layers/variant.h"

/* 1 the layer is what is wanted, 0 a variant of it has to be made, -1. */
static int bake_take_variant(struct bake *bake, struct state_layer *layer, struct err *err)
{
	enum layer_codec codec = bake->spec->compression;
	const char *wanted = manifest_layer_type(codec);
	struct variant variant;
	int found;

	if (strcmp(layer->media_type, wanted) == 0)
		return 1;
	if (bake_snapshot(bake, err) < 0)
		return -1;
	found = variant_find(bake->options->store, bake->meta, &layer->diff_id, codec, &variant,
			     err);
	if (found != 1)
		return found;
	layer->blob = variant.blob;
	layer->size = variant.size;
	(void)snprintf(layer->media_type, sizeof(layer->media_type), "%s", wanted);
	return 1;
}

/* Layers that are still of the other codec are put into the array. */
static int bake_take_variants_held(struct bake *bake, json_t *missing, struct err *err)
{
	for (size_t i = bake->base_layers; i < bake->state.layer_count; i++) {
		struct state_layer *layer = &bake->state.layers[i];
		int taken = bake_take_variant(bake, layer, err);

		if (taken < 0)
			return -1;
		if (taken == 0)
			(void)json_array_append_new(missing, convert_layer_format(layer));
	}
	return 0;
}

static int bake_make_variants(struct bake *bake, json_t *missing, struct err *err)
{
	struct asker asker = bake->asker;
	const char *name = layer_codec_name(bake->spec->compression);
	AUTO(json)
	json_t *request = convert_request_format(bake->options->store, bake->spec->compression);
	AUTO(json) json_t *answer = NULL;
	char text[64];
	int len = snprintf(text, sizeof(text), "%zu layers as %s", json_array_size(missing), name);

	(void)json_object_set(request, "layers", missing);
	bake_tell(bake, (struct bake_event){.kind = BAKE_EXPORT, .text = {text, (size_t)len}});
	asker.worker_path = bake->options->worker_path;
	if (bake_rest(bake, err) < 0 || asker_call(&asker, "convert", request, &answer, err) < 0)
		return err_ctx(err, "layers as %s", name);
	bake_tell(bake, (struct bake_event){.kind = BAKE_EXPORT_DONE});
	return bake_resume(bake, err);
}

int bake_take_variants(struct bake *bake, struct err *err)
{
	AUTO(json) json_t *missing = json_array();

	if (bake_take_variants_held(bake, missing, err) < 0)
		return -1;
	if (json_array_size(missing) == 0)
		return 0;
	if (bake_make_variants(bake, missing, err) < 0)
		return -1;
	(void)json_array_clear(missing);
	if (bake_take_variants_held(bake, missing, err) < 0)
		return -1;
	if (json_array_size(missing) > 0)
		return err_set(err, ERR_UNAVAILABLE, "a layer was collected; bake again");
	return 0;
}
