/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/hex.h"

#include <stdint.h>

const char *hex_encode(const void *bytes, size_t len, char *out)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *from = bytes;

	for (size_t i = 0; i < len; i++) {
		out[2 * i] = digits[from[i] >> 4];
		out[2 * i + 1] = digits[from[i] & 15];
	}
	out[2 * len] = '\0';
	return out;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

bool hex_decode(struct str hex, void *out)
{
	uint8_t *to = out;

	if (hex.len % 2 != 0)
		return false;
	for (size_t i = 0; i < hex.len / 2; i++) {
		int high = hex_value(hex.ptr[2 * i]);
		int low = hex_value(hex.ptr[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		to[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}
