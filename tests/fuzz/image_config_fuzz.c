/* SPDX-License-Identifier: Apache-2.0 */
/* Property: what image_config_parse() accepts is within its ceilings and has its text again. */
#include "registry/image_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_image_config struct image_config config = {0};
	char text[DIGEST_TEXT_MAX];
	struct digest again;
	struct err err;

	if (image_config_parse((struct str){(const char *)data, size}, &config, &err) < 0)
		return 0;
	if (config.diff_id_count > IMAGE_LAYERS_MAX)
		abort();
	for (size_t i = 0; i < config.diff_id_count; i++) {
		(void)digest_format(&config.diff_ids[i], text);
		if (digest_parse(str_of(text), &again, &err) < 0 ||
		    !digest_equal(&again, &config.diff_ids[i]))
			abort();
	}
	return 0;
}
