/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_names.h - what the store calls the parts of an image.
 *
 * A manifest may name its config and its layers by sha512, and the store finds
 * them so; and a config the tars of its layers. But records, leases and trees
 * know a thing by its sha256 alone. Who builds on an image, instead of handing
 * it on as it is, takes these names.
 *
 * What a config says of its layers is a stranger's word: an image that was
 * pushed, or pulled for another platform, was never unpacked. So it is taken only
 * of layers that were (layers/proof.h).
 */
#pragma once

#include "layers/store.h"
#include "registry/manifest.h"

/* Rename config and layers; the document stays as it is. ERR_NOT_FOUND for what is not here. */
int local_names_take(struct store *store, struct manifest *manifest, struct err *err) MUST_CHECK;

/*
 * Then check the diff ids, and rename them, in the config's document, too.
 * ERR_UNAVAILABLE for a layer that was never unpacked here, ERR_CORRUPT for one
 * that is another tar.
 */
int local_names_take_diff_ids(struct store *store, const struct manifest *manifest,
			      struct image_config *config, struct err *err) MUST_CHECK;
