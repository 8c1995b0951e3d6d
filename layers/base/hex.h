/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hex.h - bytes as lower-case hex digits, and back.
 */
#pragma once

#include "layers/base/buf.h"

/* Two digits a byte and a NUL go to out, which is returned. */
const char *hex_encode(const void *bytes, size_t len, char *out);

/* hex.len / 2 bytes go to out. False for an odd length or anything but lower-case digits. */
bool hex_decode(struct str hex, void *out);
