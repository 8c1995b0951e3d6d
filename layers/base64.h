/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base64.h - bytes that came as text.
 *
 * Format: RFC 4648, 4, padded.
 */
#pragma once

#include "layers/base/buf.h"

/* Bytes that the decoder writes to, for so many characters. */
#define BASE64_ROOM(length) ((size_t)(length) / 4 * 3)

/* Decode; out has room for BASE64_ROOM(text.len). False for what is no base64. */
bool base64_decode(struct str text, char *out, size_t *out_len);
