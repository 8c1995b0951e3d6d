/* SPDX-License-Identifier: Apache-2.0 */
/* Property: what reference_parse() accepts is written, read again and written the same. */
#include "registry/reference.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_buf struct buf first = BUF_INIT(2 * REFERENCE_TEXT_MAX);
	auto_buf struct buf second = BUF_INIT(2 * REFERENCE_TEXT_MAX);
	struct reference reference;
	struct err err;

	if (reference_parse((struct str){(const char *)data, size}, &reference, &err) < 0)
		return 0;
	if (reference_format(&reference, &first, &err) < 0)
		abort();
	if (first.len >= REFERENCE_TEXT_MAX)
		return 0;
	if (reference_parse(buf_str(&first), &reference, &err) < 0 ||
	    reference_format(&reference, &second, &err) < 0 ||
	    !str_equal(buf_str(&first), buf_str(&second)))
		abort();
	return 0;
}
