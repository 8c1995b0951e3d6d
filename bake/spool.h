/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool.h - what a step writes, on disk while it runs: all of it, or, where
 * that is more than the ceiling, its beginning and its end, half of the ceiling
 * each. How much is missing in between is said there.
 *
 * Readers have places of their own, counted as if nothing was missing. One who
 * is slow while the end moves on loses what is overwritten, and is told how much.
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
	uint64_t written; /* bytes, missing ones too */
};

void spool_init(struct spool *spool, int fd, uint64_t max);

/*
 * Bytes from *at on, which moves behind them: how many, 0 at the end, -1. What
 * is missing at *at is passed over, and *out_lost is how much that was.
 */
ssize_t spool_read(const struct spool *spool, uint64_t *at, char *piece, size_t len,
		   uint64_t *out_lost, struct err *err) MUST_CHECK;

/* The sentence that stands for what is missing, with line ends around it. */
struct str spool_note(uint64_t lost, char text[static SPOOL_NOTE_MAX]);

/* All that is kept, the sentence included; and how much that is. */
int spool_copy(const struct spool *spool, struct sink *out, struct err *err) MUST_CHECK;
uint64_t spool_kept(const struct spool *spool);
