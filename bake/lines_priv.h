/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines_priv.h - a step's physical lines as the one logical line they are.
 *
 * A backslash before the line's end (blanks may follow it) continues it, unless
 * another backslash stands before; nothing is put in its place. Lines whose
 * first visible character is '#' are comments, also amid continuations, where
 * blank lines are skipped too, and told by *out_gap. Blanks in front of the first line and behind
 * the last are dropped. CR before LF is no content, nor is a byte order mark.
 * Of directives in front ("# syntax=", "# check=") only "# escape=" has a
 * meaning, and only a backslash is taken.
 *
 * ERR_REFUSED, naming the line: text after the instruction's end, NUL and
 * control bytes other than tabs.
 */
#pragma once

#include "layers/base/buf.h"

#include <stdbool.h>

int lines_join(struct str text, struct buf *out, bool *out_gap, struct err *err) MUST_CHECK;
