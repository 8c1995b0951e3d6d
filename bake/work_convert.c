/* SPDX-License-Identifier: Apache-2.0 */
/* work_convert.c - the role that makes blobs of the other codec. */
#include "bake/convert_request.h"
#include "bake/work.h"
#include "bake/work_call.h"
#include "layers/lease.h"
#include "registry/convert.h"

static int convert_layers(struct work_call *call, struct lease *lease, enum layer_codec codec,
			  struct err *err)
{
	json_t *layers;
	json_t *item;
	size_t i;

	if (json_need_array(call->request, "", "layers", &layers, err) < 0)
		return -1;
	json_array_foreach(layers, i, item)
	{
		struct variant_source source;
		struct variant variant;

		if (convert_layer_parse(item, &source, err) < 0)
			return -1;
		source.cancel = &call->cancel;
		if (lease_add(lease, &source.blob, err) < 0 ||
		    lease_add(lease, &source.diff_id, err) < 0 ||
		    variant_make(call->store, &source, codec, &variant, err) < 0)
			return -1;
	}
	return 0;
}

static int convert_whole(struct work_call *call, struct lease *lease, enum layer_codec codec,
			 json_t *answer, struct err *err)
{
	char text[DIGEST_TEXT_MAX];
	struct digest digest;
	struct str name;

	if (json_need_string(call->request, "", "manifest", &name, err) < 0 ||
	    digest_parse(name, &digest, err) < 0 || lease_add(lease, &digest, err) < 0 ||
	    convert_image(call->store, &digest, codec, &call->cancel, &digest, err) < 0)
		return -1;
	(void)json_object_set_new(answer, "manifest", json_string(digest_format(&digest, text)));
	return 0;
}

static int convert_answer(struct work_call *call, json_t **out, struct err *err)
{
	AUTO(json) json_t *answer = json_object();
	AUTO(lease) struct lease *lease = NULL;
	enum layer_codec codec;
	struct str name;
	int result;

	if (json_need_string(call->request, "", "codec", &name, err) < 0 ||
	    layer_codec_parse(name, &codec, err) < 0 || lease_open(call->store, &lease, err) < 0 ||
	    lease_rest(lease, err) < 0)
		return -1;
	result = json_object_get(call->request, "manifest")
			 ? convert_whole(call, lease, codec, answer, err)
			 : convert_layers(call, lease, codec, err);
	if (result == 0)
		*out = steal_ptr(&answer);
	return result;
}

int work_convert(void)
{
	return work_call_run(convert_answer);
}
