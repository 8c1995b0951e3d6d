/* SPDX-License-Identifier: Apache-2.0 */
#define LOG_MODULE "registry"
#include "registry/retry_priv.h"

#include "layers/base/log.h"

#include <sys/random.h>

bool retry_status(long status)
{
	return status == 408 || status == 429 || (status >= 500 && status != 501);
}

/* Half of it is certain, the other half is chance. */
static int64_t retry_jitter(int64_t ms)
{
	uint32_t chance = 0;

	if (getrandom(&chance, sizeof(chance), 0) != (ssize_t)sizeof(chance))
		abort();
	return ms / 2 + (int64_t)(chance % (uint64_t)(ms / 2 + 1));
}

int retry_wait(struct retry *retry, const struct http *http, int64_t after_ms, struct err *err)
{
	int64_t base = retry->base_ms > 0 ? retry->base_ms : RETRY_BASE_MS;
	int64_t ms = retry_jitter(base << (retry->failures < 8 ? retry->failures : 8));

	if (err->kind == ERR_TIMEOUT && ++retry->timeouts >= RETRY_TIMEOUTS)
		return -1;
	if (++retry->failures >= retry->tries)
		return -1;
	if (after_ms > ms)
		ms = after_ms;
	log_debug("request fails and is tried again wait_ms=%lld why=%s", (long long)ms, err->text);
	return http_wait(http, ms, err);
}
