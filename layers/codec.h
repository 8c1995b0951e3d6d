/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec.h - the formats of the layers that we make.
 *
 * A tar is the same in either, and so are its diff id, its tree and every key
 * above it: the codec only decides who can read the blob. Docker before 23
 * reads only gzip.
 */
#pragma once

#include "layers/base/buf.h"

enum layer_codec { LAYER_ZSTD, LAYER_GZIP };

#define LAYER_CODECS 2

/* "zstd" or "gzip". */
const char *layer_codec_name(enum layer_codec codec);

/* ERR_INVALID says what there is. */
int layer_codec_parse(struct str text, enum layer_codec *out, struct err *err) MUST_CHECK;
