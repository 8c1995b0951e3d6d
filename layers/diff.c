/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/diff_priv.h"

static int diff_cut(void *ctx, struct err *err)
{
	return layer_writer_cut(ctx, err);
}

int diff_seal(struct store *store, const struct diff_spec *spec, struct diff_result *out,
	      struct err *err)
{
	AUTO(layer_writer) struct layer_writer *writer = NULL;
	struct diff_result result;
	struct diff_out sink = {.cut = diff_cut};

	if (fingerprint_key(store, &sink.key, err) < 0 ||
	    layer_writer_open(store, spec->codec, &writer, err) < 0)
		return -1;
	sink.sink = layer_writer_sink(writer);
	sink.ctx = writer;
	if (diff_run(spec, &sink, &result, err) < 0)
		return -1;
	if (!result.empty && layer_writer_finish(writer, &result.info, err) < 0)
		return -1;
	*out = result;
	return 0;
}
