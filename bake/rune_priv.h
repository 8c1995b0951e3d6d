/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rune_priv.h - text as characters. What is no UTF-8 is a character of its own
 * for each byte, above all others, so that any file name has a reading.
 */
#pragma once

#include "layers/base/buf.h"

#include <stdint.h>

#define RUNE_BYTE 0x110000U /* plus a byte that is part of no character */

/* Take the next character off *text, which is not empty. */
uint32_t rune_take(struct str *text);

/* Append what rune_take() took. */
int rune_put(uint32_t rune, struct buf *out, struct err *err) MUST_CHECK;

/* Letters and digits of all scripts, and '_'. */
bool rune_is_word(uint32_t rune);
