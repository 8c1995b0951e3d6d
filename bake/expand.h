/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expand.h - variables, quotes and escapes in COPY, ENV and WORKDIR.
 *
 * One word in, one word out: expanded blanks do not split. $NAME and ${NAME};
 * an unset name is empty, and so are the shell's positional and special ones.
 * Single quotes are literal, double quotes expand, quotes are removed, a
 * backslash escapes (between double quotes only ", $ and itself). The grammar,
 * with the forms that ${} has, is in expand_word.c.
 *
 * All words of one instruction see the same values: `ENV a=1 b=$a` uses the a
 * of before.
 */
#pragma once

#include "bake/instruction.h"

#define EXPAND_MAX ((size_t)1024 * 1024) /* one word, expanded; what a step may be */

struct state;

/* Without a state every name is unset: that checks the word's form. */
int expand_word(struct str word, const struct state *state, struct buf *out, struct err *err)
	MUST_CHECK;

/*
 * The same instruction with all words and flags expanded, and a text in which
 * each of them is a JSON string, so that different instructions have different
 * texts. RUN is copied, since its shell expands its variables; only its mounts
 * are parsed here.
 */
int expand_instruction(const struct instruction *instruction, const struct state *state,
		       struct instruction *out, struct err *err) MUST_CHECK;
