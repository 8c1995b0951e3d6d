/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/codec.h"

static const char *const names[LAYER_CODECS] = {
	[LAYER_ZSTD] = "zstd",
	[LAYER_GZIP] = "gzip",
};

const char *layer_codec_name(enum layer_codec codec)
{
	return names[codec];
}

int layer_codec_parse(struct str text, enum layer_codec *out, struct err *err)
{
	for (size_t i = 0; i < LAYER_CODECS; i++) {
		if (!str_equal(text, str_of(names[i])))
			continue;
		*out = (enum layer_codec)i;
		return 0;
	}
	return err_set(err, ERR_INVALID, "\"" STR_FMT "\": expected zstd or gzip", STR_ARG(text));
}
