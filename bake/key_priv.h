/* SPDX-License-Identifier: Apache-2.0 */
/* key_priv.h - the bytes whose digest is the key, for the test that decodes them. */
#pragma once

#include "bake/key.h"

#define KEY_BYTES_MAX ((size_t)16 * 1024 * 1024)

int key_encode(const struct key_parts *parts, struct buf *out, struct err *err) MUST_CHECK;
