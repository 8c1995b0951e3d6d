/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words_priv.h - an instruction's arguments, cut into words in one of three
 * ways: at all blanks, at blanks outside quotes, as a JSON array.
 *
 * Quotes and escapes stay in the words (expand.h removes them). More than
 * INSTRUCTION_WORDS_MAX is ERR_REFUSED.
 */
#pragma once

#include "bake/instruction.h"

int words_add(struct words *words, struct str word, struct err *err) MUST_CHECK;
void words_done(struct words *words);

/* COPY: every run of blanks separates, whatever quotes stand around it. */
int words_split(struct str text, struct words *out, struct err *err) MUST_CHECK;

/* ENV: blanks inside quotes, or behind the escape, do not separate. */
int words_split_quoted(struct str text, char escape, struct words *out, struct err *err) MUST_CHECK;

/* The same words, with a backslash as the escape. */
int words_escape(struct str text, char escape, struct buf *out, struct err *err) MUST_CHECK;

/*
 * 1 for one whole JSON array of strings; 0 for anything else, which is text;
 * -1 (ERR_REFUSED) for an array that holds something else than strings.
 */
int words_from_json(struct str text, struct words *out, struct err *err) MUST_CHECK;

/* Whether a word outside quotes is "<<NAME" or "<<-NAME", digits in front or not. */
bool words_have_heredoc(struct str text, char escape);

static inline bool words_blank(char c)
{
	return c == ' ' || c == '\t';
}

static inline void auto_words_release(struct words *slot)
{
	words_done(slot);
}
#define auto_words AUTO(words)
