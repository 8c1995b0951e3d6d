/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mask.h - secrets in a step's log become "***" before anybody sees or keeps it.
 *
 * Each line of a secret's value is hidden, so that one line of a key that is
 * printed alone is, too; a line shorter than MASK_LINE_MIN would hide what
 * only looks like it. What a step prints in another form (encoded, reversed)
 * is not recognized.
 *
 * Ownership: values are lent, and stay until mask_done(). A mask belongs to
 * one thread at a time. Memory: twice the longest line and a piece, wiped.
 */
#pragma once

#include "layers/base/sink.h"

#define MASK_LINE_MIN ((size_t)4)
#define MASK_PIECE_MAX ((size_t)64 * 1024)
#define MASK_LINE_MAX ((size_t)1024 * 1024)

struct mask {
	struct str *lines; /* owned array of lent bytes */
	size_t count;
	struct buf held; /* the end of what came, which may be the beginning of a secret */
};

#define MASK_INIT ((struct mask){.held = BUF_WIPED(MASK_LINE_MAX + MASK_PIECE_MAX)})

void mask_add(struct mask *mask, struct str secret);

/* The next bytes of the log, MASK_PIECE_MAX at most; what is sure goes to the sink. */
int mask_write(struct mask *mask, struct str bytes, struct sink *out, struct err *err) MUST_CHECK;

/* The end of the log: what was held goes, too. */
int mask_finish(struct mask *mask, struct sink *out, struct err *err) MUST_CHECK;
void mask_done(struct mask *mask);
