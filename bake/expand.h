/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expand.h - variables, quotes and escapes in COPY, ENV and WORKDIR.
 *
 * One word in, one word out: expanded blanks do not split. $NAME and ${NAME};
 * an unset name is empty. Single quotes are literal, double quotes expand,
 * quotes are removed, a backslash escapes. Forms with an operator
 * (${NAME:-word}) are ERR_REFUSED until they are supported.
 */
#pragma once

#include "layers/base/buf.h"

struct state;

int expand_word(struct str word, const struct state *state, struct buf *out, struct err *err)
	MUST_CHECK;
