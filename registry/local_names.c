/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/local_names.h"

#include "layers/blob.h"
#include "layers/proof.h"

static int local_names_one(struct store *store, struct digest *name, struct err *err)
{
	char text[DIGEST_TEXT_MAX];
	struct digest id;
	int found;

	if (name->algorithm == DIGEST_SHA256)
		return 0;
	found = blob_find_id(store, name, &id, err);
	if (found == 0)
		return err_set(err, ERR_NOT_FOUND, "no blob %s", digest_format(name, text));
	if (found < 0)
		return -1;
	*name = id;
	return 0;
}

int local_names_take(struct store *store, struct manifest *manifest, struct err *err)
{
	if (local_names_one(store, &manifest->config.digest, err) < 0)
		return -1;
	for (size_t i = 0; i < manifest->layer_count; i++) {
		if (local_names_one(store, &manifest->layers[i].digest, err) < 0)
			return -1;
	}
	return 0;
}

/* What a config calls a layer's tar becomes its sha256, if it is that layer's. */
static int local_names_one_tar(struct meta *meta, const struct digest *blob, struct digest *name,
			       struct err *err)
{
	char text[DIGEST_TEXT_MAX];
	struct digest tar;
	int found = proof_check(meta, blob, name, &tar, err);

	if (found == 0)
		return err_set(err, ERR_UNAVAILABLE,
			       "layer %s was never unpacked here, so nobody knows whether it is "
			       "what the image's config says; a bake on the image looks",
			       digest_format(blob, text));
	if (found < 0)
		return err_ctx(err, "layer %s", digest_format(blob, text));
	*name = tar;
	return 0;
}

int local_names_take_diff_ids(struct store *store, const struct manifest *manifest,
			      struct image_config *config, struct err *err)
{
	json_t *list = json_object_get(json_object_get(config->document, "rootfs"), "diff_ids");
	AUTO(meta) struct meta *meta = NULL;
	char text[DIGEST_TEXT_MAX];

	if (config->diff_id_count != manifest->layer_count)
		return err_set(err, ERR_CORRUPT, "the manifest has %zu layers and the config %zu",
			       manifest->layer_count, config->diff_id_count);
	if (meta_begin(store, META_READ, &meta, err) < 0)
		return -1;
	for (size_t i = 0; i < config->diff_id_count; i++) {
		struct digest *diff_id = &config->diff_ids[i];
		bool renamed = diff_id->algorithm != DIGEST_SHA256;

		if (local_names_one_tar(meta, &manifest->layers[i].digest, diff_id, err) < 0)
			return -1;
		if (renamed)
			(void)json_array_set_new(list, i,
						 json_string(digest_format(diff_id, text)));
	}
	return 0;
}
