/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/local_names.h"

#include "layers/blob.h"

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
