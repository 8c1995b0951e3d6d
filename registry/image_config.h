/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_config.h - what an image runs and what its layers are, uncompressed.
 *
 * Format: OCI image-spec 1.1, config.md; Docker's container.image.v1 is the
 * same in all that is read here.
 *
 * Ownership: a parsed config owns one JSON document and is freed whole. Only
 * the fields of this struct are checked: Env, history and the rest are in
 * `document` as the image's maker wrote them.
 */
#pragma once

#include "layers/base/json.h"
#include "layers/digest.h"
#include "registry/platform.h"

#define IMAGE_CONFIG_MAX ((size_t)8 * 1024 * 1024)
#define IMAGE_LAYERS_MAX 500 /* overlayfs stacks no more */

struct image_config {
	json_t *document;         /* owned: the whole config */
	struct platform platform; /* all "" where the config names none */
	struct digest *diff_ids;  /* owned, bottom first */
	size_t diff_id_count;
};

/* ERR_CORRUPT names what is wrong; ERR_LIMIT above the ceilings. */
int image_config_parse(struct str text, struct image_config *out, struct err *err) MUST_CHECK;
void image_config_done(struct image_config *config);

/*
 * The chain id of a layer on its parent's (image-spec config.md, "Layer
 * ChainID"); parent is NULL for the lowest layer.
 */
void image_config_chain_id(const struct digest *parent, const struct digest *diff_id,
			   struct digest *out);

static inline void auto_image_config_release(struct image_config *slot)
{
	image_config_done(slot);
}
#define auto_image_config AUTO(image_config)
