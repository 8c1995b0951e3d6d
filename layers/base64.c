/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base64.h"

#include <limits.h>
#include <openssl/evp.h>

#define BASE64_PADDING_MAX 2

bool base64_decode(struct str text, char *out, size_t *out_len)
{
	int padding = 0;
	int n;

	if (text.len % 4 != 0 || text.len > INT_MAX)
		return false;
	n = EVP_DecodeBlock((unsigned char *)out, (const unsigned char *)text.ptr, (int)text.len);
	for (size_t i = text.len; i > 0 && text.ptr[i - 1] == '='; i--)
		padding++;
	if (n < padding || padding > BASE64_PADDING_MAX)
		return false;
	*out_len = (size_t)(n - padding); /* libcrypto counts what is padded as zeros */
	return true;
}
