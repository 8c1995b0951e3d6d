/* SPDX-License-Identifier: Apache-2.0 */
/* Property: a target lies in the field, in angle brackets. */
#include "registry/link_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str field = {(const char *)data, size};
	struct str target = link_find(field, STR("next"));

	if (target.len > 0 &&
	    (target.ptr <= field.ptr || target.ptr[-1] != '<' ||
	     target.ptr + target.len >= field.ptr + field.len || target.ptr[target.len] != '>'))
		abort();
	return 0;
}
