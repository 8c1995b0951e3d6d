/* SPDX-License-Identifier: Apache-2.0 */
/* Property: every call takes something off the field, and a text has no control characters. */
#include "registry/warnings_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_buf struct buf text = BUF_INIT(WARNINGS_BYTES_MAX);
	struct str field = {(const char *)data, size};
	size_t before = field.len + 1;

	while (warnings_next(&field, &text)) {
		if (field.len >= before || text.len == 0)
			abort();
		before = field.len;
		for (size_t i = 0; i < text.len; i++) {
			if ((unsigned char)text.ptr[i] < 0x20 || text.ptr[i] == 0x7f)
				abort();
		}
		buf_clear(&text);
	}
	return 0;
}
