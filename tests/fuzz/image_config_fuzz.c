/* SPDX-License-Identifier: Apache-2.0 */
/* Property: what image_config_parse() accepts is within its ceilings, and every layer a sha256. */
#include "registry/image_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_image_config struct image_config config = {0};
	struct err err;

	if (image_config_parse((struct str){(const char *)data, size}, &config, &err) < 0)
		return 0;
	if (config.diff_id_count > IMAGE_LAYERS_MAX)
		abort();
	for (size_t i = 0; i < config.diff_id_count; i++) {
		if (config.diff_ids[i].algorithm != DIGEST_SHA256)
			abort();
	}
	return 0;
}
