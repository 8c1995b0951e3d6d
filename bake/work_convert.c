/* SPDX-License-Identifier: Apache-2.0 */
/* work_convert.c - the role that makes blobs of the other codec. */
#include "bake/convert_request.h"
#include "bake/work.h"
#include "bake/work_call.h"
#include "layers/digest_json.h"
#include "layers/lease.h"
#include "registry/convert.h"

struct convert {
	struct work_call *call;
	enum layer_codec codec;
};

static int convert_layer(void *ctx, size_t number, const json_t *item, struct variant_source *layer,
			 struct err *err)
{
	const struct convert *convert = ctx;
	struct variant variant;

	(void)number, (void)item;
	layer->cancel = &convert->call->cancel;
	return variant_make(convert->call->store, layer, convert->codec, &variant, err);
}

static int convert_whole(const struct convert *convert, struct lease *lease, json_t *answer,
			 struct err *err)
{
	struct work_call *call = convert->call;
	struct digest digest;

	if (digest_json_need(call->request, "", "manifest", &digest, err) < 0 ||
	    lease_add(lease, &digest, err) < 0 ||
	    convert_image(call->store, &digest, convert->codec, &call->cancel, &digest, err) < 0)
		return -1;
	digest_json_set(answer, "manifest", &digest);
	return 0;
}

static int convert_answer(struct work_call *call, json_t **out, struct err *err)
{
	AUTO(json) json_t *answer = json_object();
	AUTO(lease) struct lease *lease = NULL;
	struct convert convert = {.call = call};
	struct str name;
	int result;

	if (json_need_string(call->request, "", "codec", &name, err) < 0 ||
	    layer_codec_parse(name, &convert.codec, err) < 0 ||
	    lease_open(call->store, &lease, err) < 0 || lease_rest(lease, err) < 0)
		return -1;
	result = json_object_get(call->request, "manifest")
			 ? convert_whole(&convert, lease, answer, err)
			 : convert_layers_each(call->request, lease, convert_layer, &convert, err);
	if (result == 0)
		*out = steal_ptr(&answer);
	return result;
}

int work_convert(void)
{
	return work_call_run(convert_answer);
}
