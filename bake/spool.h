/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool.h - the output of a running step, on disk: all of it, or, above the
 * ceiling, its beginning and its end, half of the ceiling each, with a sentence
 * between them that says how much is missing.
 *
 * Readers have offsets of their own, counted as if nothing was missing. A
 * reader who is slow while the end moves on loses what is overwritten, and
 * learns how much.
 *
 * Threads: one at a time.
 */
#pragma once

#include "layers/base/sink.h"

#include <sys/types.h>

#define SPOOL_NOTE_MAX ((size_t)96)

struct spool {
	struct sink sink; /* what goes to it; never finished */
	int fd;           /* an empty file at first; borrowed */
	uint64_t max;     /* bytes of the file */
	uint64_t written; /* bytes, missing ones included */
};

void spool_init(struct spool *spool, int fd, uint64_t max);

/*
 * Bytes from *at on, which moves behind them: how many, 0 at the end, -1.
 * Missing bytes at *at are skipped, and *out_lost is how many there were.
 */
ssize_t spool_read(const struct spool *spool, uint64_t *at, char *piece, size_t len,
		   uint64_t *out_lost, struct err *err) MUST_CHECK;

/* The sentence that stands for what is missing, with line ends around it. */
struct str spool_note(uint64_t lost, char text[static SPOOL_NOTE_MAX]);

/* Copy all that is kept, the sentence included. spool_kept() is its length. */
int spool_copy(const struct spool *spool, struct sink *out, struct err *err) MUST_CHECK;
uint64_t spool_kept(const struct spool *spool);
