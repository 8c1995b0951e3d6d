/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines_priv.h - a step's physical lines as the one logical line they are.
 *
 * A backslash before the line's end (blanks may follow it) continues it, unless
 * another one stands before; nothing is put in its place. Lines whose first
 * visible character is '#' are comments, also amid continuations, where blank
 * lines are skipped too, and told. Blanks in front of the first line and behind
 * the last are dropped. CR before LF is no content, nor is a byte order mark. Of
 * directives in front ("# syntax=", "# check=") only "# escape=" has a meaning:
 * a backtick may stand for the backslash, everywhere in the step.
 *
 * ERR_REFUSED, naming the line: text after the instruction's end, NUL and
 * control bytes other than tabs.
 */
#pragma once

#include "layers/base/buf.h"

#include <stdbool.h>

/* What was seen on the way. */
struct lines_seen {
	bool gap;    /* a blank line stands where a line is continued */
	char escape; /* \ or ` */
};

int lines_join(struct str text, struct buf *out, struct lines_seen *seen, struct err *err)
	MUST_CHECK;

/* Of a text that is refused: the line that cannot stand there, else the instruction's first. */
size_t lines_blame(struct str text);
