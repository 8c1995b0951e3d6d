/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/convert_request.h"

#include "layers/digest_json.h"

json_t *convert_request_format(struct store *store, enum layer_codec codec)
{
	json_t *value = asker_request_new(store);

	json_set_text(value, "codec", layer_codec_name(codec));
	return value;
}

int convert_ask_image(const struct asker *asker, const struct digest *manifest,
		      enum layer_codec codec, struct digest *out, struct err *err)
{
	AUTO(json) json_t *request = convert_request_format(asker->store, codec);
	AUTO(json) json_t *answer = NULL;
	struct str name;

	digest_json_set(request, "manifest", manifest);
	if (asker_call(asker, "convert", request, &answer, err) < 0 ||
	    json_need_string(answer, "", "manifest", &name, err) < 0)
		return -1;
	return digest_parse(name, out, err);
}

json_t *convert_layer_format(const struct state_layer *layer)
{
	json_t *value = json_object();

	digest_json_set(value, "blob", &layer->blob);
	digest_json_set(value, "diffId", &layer->diff_id);
	json_set_size(value, "size", layer->size);
	return value;
}

static int convert_layer_parse(const json_t *value, struct variant_source *out, struct err *err)
{
	int64_t size;

	*out = (struct variant_source){.max_bytes = UINT64_MAX}; /* it was small enough when made */
	if (digest_json_need(value, "layers", "blob", &out->blob, err) < 0 ||
	    digest_json_need(value, "layers", "diffId", &out->diff_id, err) < 0 ||
	    json_need_int(value, "layers", "size", &size, err) < 0)
		return -1;
	out->size = (uint64_t)size;
	return 0;
}

int convert_layers_each(const json_t *request, struct lease *lease, convert_layer_fn *fn, void *ctx,
			struct err *err)
{
	json_t *layers;
	json_t *item;
	size_t i;

	if (json_need_array(request, "", "layers", &layers, err) < 0)
		return -1;
	json_array_foreach(layers, i, item)
	{
		struct variant_source layer;

		if (convert_layer_parse(item, &layer, err) < 0 ||
		    lease_add(lease, &layer.blob, err) < 0 ||
		    lease_add(lease, &layer.diff_id, err) < 0 || fn(ctx, i, item, &layer, err) < 0)
			return -1;
	}
	return 0;
}
