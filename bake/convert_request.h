/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert_request.h - what the role "convert" is asked: layers of ours in the
 * other codec (`layers`), or a whole image with its base (`manifest`).
 *
 * The answer to the second has the new manifest's digest as `manifest`.
 */
#pragma once

#include "bake/asker.h"
#include "bake/state.h"
#include "layers/codec.h"
#include "layers/variant.h"

/* Without layers or manifest yet. */
json_t *convert_request_format(struct store *store, enum layer_codec codec);

/*
 * Have an image converted; the asker's worker is hearth-worker. The caller has a
 * lease that rests (layers/lease.h), or what was made may be collected.
 */
int convert_ask_image(const struct asker *asker, const struct digest *manifest,
		      enum layer_codec codec, struct digest *out, struct err *err) MUST_CHECK;

/* One of `layers`, and back. */
json_t *convert_layer_format(const struct state_layer *layer);
int convert_layer_parse(const json_t *value, struct variant_source *out, struct err *err)
	MUST_CHECK;
