/* SPDX-License-Identifier: Apache-2.0 */
/* Property: whatever a registry writes, the user gets one line of printable text. */
#include "registry/refusal_priv.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = {0};

	if (refusal_explain(404, (struct str){(const char *)data, size}, false, "x", &err) == 0)
		abort();
	for (const char *at = err.text; *at; at++) {
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			abort();
	}
	return 0;
}
