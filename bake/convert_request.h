/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert_request.h - what the role "convert" is asked: layers of ours in the
 * other codec (`layers`), or a whole image with its base (`manifest`). The role
 * "check" (fsck_layers.c) is asked about layers in the same form.
 *
 * The answer to the second has the new manifest's digest as `manifest`.
 */
#pragma once

#include "bake/asker.h"
#include "bake/state.h"
#include "layers/codec.h"
#include "layers/lease.h"
#include "layers/variant.h"

/* Without layers or manifest yet. */
json_t *convert_request_format(struct store *store, enum layer_codec codec);

/*
 * Have an image converted; the asker's worker is hearth-worker. The caller has
 * a resting lease (layers/lease.h); without one what was made may be collected.
 */
int convert_ask_image(const struct asker *asker, const struct digest *manifest,
		      enum layer_codec codec, struct digest *out, struct err *err) MUST_CHECK;

/* One of `layers`. */
json_t *convert_layer_format(const struct state_layer *layer);

/* Each of them, named in the lease first; `item` is what the request says of it. */
typedef int convert_layer_fn(void *ctx, size_t number, const json_t *item,
			     struct variant_source *layer, struct err *err);
int convert_layers_each(const json_t *request, struct lease *lease, convert_layer_fn *fn, void *ctx,
			struct err *err) MUST_CHECK;
