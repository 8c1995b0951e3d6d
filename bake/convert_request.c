/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/convert_request.h"

json_t *convert_request_format(struct store *store, enum layer_codec codec)
{
	json_t *value = asker_request_new(store);

	(void)json_object_set_new(value, "codec", json_string(layer_codec_name(codec)));
	return value;
}

int convert_ask_image(const struct asker *asker, const struct digest *manifest,
		      enum layer_codec codec, struct digest *out, struct err *err)
{
	AUTO(json) json_t *request = convert_request_format(asker->store, codec);
	AUTO(json) json_t *answer = NULL;
	char text[DIGEST_TEXT_MAX];
	struct str name;

	(void)json_object_set_new(request, "manifest", json_string(digest_format(manifest, text)));
	if (asker_call(asker, "convert", request, &answer, err) < 0 ||
	    json_need_string(answer, "", "manifest", &name, err) < 0)
		return -1;
	return digest_parse(name, out, err);
}

json_t *convert_layer_format(const struct state_layer *layer)
{
	json_t *value = json_object();
	char text[DIGEST_TEXT_MAX];

	(void)json_object_set_new(value, "blob", json_string(digest_format(&layer->blob, text)));
	(void)json_object_set_new(value, "diffId",
				  json_string(digest_format(&layer->diff_id, text)));
	(void)json_object_set_new(value, "size", json_integer((json_int_t)layer->size));
	return value;
}

int convert_layer_parse(const json_t *value, struct variant_source *out, struct err *err)
{
	struct str blob;
	struct str diff_id;
	int64_t size;

	*out = (struct variant_source){.max_bytes = UINT64_MAX}; /* it was small enough when made */
	if (json_need_string(value, "layers", "blob", &blob, err) < 0 ||
	    json_need_string(value, "layers", "diffId", &diff_id, err) < 0 ||
	    json_need_int(value, "layers", "size", &size, err) < 0 ||
	    digest_parse(blob, &out->blob, err) < 0 ||
	    digest_parse(diff_id, &out->diff_id, err) < 0)
		return -1;
	out->size = (uint64_t)size;
	return 0;
}
