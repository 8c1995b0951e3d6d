/* SPDX-License-Identifier: Apache-2.0 */
/* Property: the next time is after the one given and on a minute, and there is none between. */
#include "bake/cron.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const int64_t minute_ms = 60000;
	int64_t after = 0;
	int64_t next;
	struct cron cron;
	struct err err;

	if (size < 6)
		return 0;
	for (size_t i = 0; i < 6; i++)
		after = after << 8 | data[i];
	after %= (int64_t)400 * 366 * 86400 * 1000;
	if (cron_parse((struct str){(const char *)data + 6, size - 6}, &cron, &err) < 0)
		return 0;
	next = cron_next(&cron, after);
	if (next <= after || next % minute_ms != 0)
		abort();
	if (cron_next(&cron, next - 1) != next ||
	    cron_next(&cron, after + (next - after) / 2) != next)
		abort();
	return 0;
}
