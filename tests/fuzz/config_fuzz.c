/* SPDX-License-Identifier: Apache-2.0 */
/* Property: what an accepted configuration says is bounded, and whole. */
#include "api/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_config struct config config = CONFIG_INIT;
	struct err err;

	if (config_parse((struct str){(const char *)data, size}, &config, &err) < 0)
		return 0;
	if (config.mirror_count > CONFIG_LIST_MAX || config.host_count > CONFIG_LIST_MAX ||
	    config.gc.keep < 0 || config.gc.unused_ms < 0 || config.gc.max_bytes == 0 ||
	    !config.tls_cert != !config.tls_key || (config.data && config.data[0] != '/'))
		abort();
	for (size_t i = 0; i < config.mirror_count; i++) {
		if (config.mirrors[i].place.len == 0)
			abort();
	}
	for (size_t i = 0; i < config.secret_count; i++) {
		if (!config.secrets[i].file == !config.secrets[i].env)
			abort();
	}
	return 0;
}
