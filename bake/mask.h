/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mask.h - secrets in a step's log become "***" before anybody sees or keeps it.
 *
 * Each line of a secret's value is hidden, so that a single printed line of a
 * key is, too; lines shorter than MASK_LINE_MIN are not, since they would hide
 * other text. What a step prints in another form (encoded, reversed) is not
 * recognized.
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
	struct buf held; /* held back: the last bytes, which may begin a secret */
};

#define MASK_INIT ((struct mask){.held = BUF_WIPED(MASK_LINE_MAX + MASK_PIECE_MAX)})

void mask_add(struct mask *mask, struct str secret);

/*
 * The next bytes of the log, MASK_PIECE_MAX at most; what can be no part of a
 * secret any more goes to the sink.
 */
int mask_write(struct mask *mask, struct str bytes, struct sink *out, struct err *err) MUST_CHECK;

/* The end of the log: what was held back goes to the sink, too. */
int mask_finish(struct mask *mask, struct sink *out, struct err *err) MUST_CHECK;
void mask_done(struct mask *mask);
