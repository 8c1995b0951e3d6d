/* SPDX-License-Identifier: Apache-2.0 */
/* Property: no document is both an image and an index, and what is chosen is within the ceilings.
 */
#include "registry/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct platform wanted = {"linux", "amd64", ""};
	struct str text = {(const char *)data, size};
	auto_manifest struct manifest manifest = {0};
	struct descriptor entry;
	struct err err;
	bool index = false;

	if (manifest_is_index(text, &index, &err) < 0) {
		if (manifest_parse(text, &manifest, &err) == 0)
			abort();
		return 0;
	}
	if (manifest_parse(text, &manifest, &err) == 0 &&
	    (index || manifest.layer_count > MANIFEST_LAYERS_MAX ||
	     manifest.config.size > IMAGE_CONFIG_MAX))
		abort();
	if (manifest_choose(text, &wanted, &entry, &err) == 0 && !index)
		abort();
	if (manifest_index_in(text, 0, &entry, &err) == 1 && !index)
		abort();
	return 0;
}
