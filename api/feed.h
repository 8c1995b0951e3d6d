/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed.h - a stream that is read ahead by a job, a piece at a time.
 *
 * Whoever sends a stream serves others as well, and to read it may take its time:
 * a journal is searched, a log sifted. So a job of a pool reads a piece, and the
 * sender only copies from it. No more than one piece is in memory. What a stream
 * has at hand the sender takes by itself (feed_take_near()), without a piece.
 *
 *	state      who has it, and what is next
 *	IDLE       the sender's: feed_begin()
 *	READING    the job's, until it has called `read`
 *	READ       the sender's: feed_take() where len > 0, else feed_clear()
 */
#pragma once

#include "api/pool.h"
#include "layers/base/http.h"

#include <stdatomic.h>

#define FEED_PIECE ((size_t)64 * 1024) /* as a stream of known length is sent */

enum feed_state { FEED_IDLE, FEED_READING, FEED_READ };

struct feed {
	struct http_stream *stream; /* borrowed */
	/* Called by the job, at last: the feed may be gone when it returns. */
	void (*read)(struct feed *feed);
	size_t piece_max;
	bool over; /* the stream is to end */
	atomic_int state;
	/* while it is READ: */
	ssize_t len; /* what the stream's read said */
	struct http_wait wait;
	/* its own: */
	struct pool_job job;
	char *bytes;
	uint64_t at; /* bytes of the stream in front of the piece */
	size_t taken;
};

/*
 * While it is IDLE: how many bytes could be copied without a job; 0 for none, and
 * -1 as the stream's read says.
 */
ssize_t feed_take_near(struct feed *feed, char *out, size_t max);

/* Let a piece of at most max bytes be read. False: nobody can. */
bool feed_begin(struct feed *feed, struct pool *pool, size_t max);

/* How many bytes of the piece were copied; with the last of them it is IDLE. */
ssize_t feed_take(struct feed *feed, char *out, size_t max);

/* There was no piece: it is IDLE. */
void feed_clear(struct feed *feed);

/* Nobody reads. */
void feed_done(struct feed *feed);
