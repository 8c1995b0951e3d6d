/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert.h - an image with its layers in another codec.
 *
 * Every layer is made again as a variant (layers/variant.h), the base's, too;
 * those of that codec already stay as they are. The config, and so all diff ids
 * and trees, is the same. The new manifest is an OCI one whose media types
 * match the bytes; annotations that describe the old bytes are dropped
 * (eStargz's and zstd:chunked's tables of contents).
 *
 * Of an index each image that the store has is converted; other entries, such
 * as attestations, stay.
 */
#pragma once

#include "layers/base/cancel.h"
#include "layers/codec.h"
#include "layers/digest.h"
#include "layers/store.h"

/*
 * Durable when it returns 0. *out is the same digest where nothing had to
 * change. ERR_NOT_FOUND for what the store lacks, ERR_CORRUPT for a layer that
 * is not its diff id's. cancel is NULL for none.
 */
int convert_image(struct store *store, const struct digest *manifest, enum layer_codec codec,
		  const struct cancel *cancel, struct digest *out, struct err *err) MUST_CHECK;
