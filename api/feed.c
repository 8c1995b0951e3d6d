/* SPDX-License-Identifier: Apache-2.0 */
#include "api/feed.h"

#include "layers/base/embed.h"

#include <stdlib.h>
#include <string.h>

static void feed_run(struct pool_job *job)
{
	struct feed *feed = container_of(job, struct feed, job);

	feed->bytes = malloc(feed->piece_max);
	if (!feed->bytes)
		abort();
	feed->wait = (struct http_wait){0};
	feed->len = feed->stream->read(feed->stream, feed->at, feed->bytes, feed->piece_max,
				       feed->over, &feed->wait);
	atomic_store(&feed->state, FEED_READ);
	feed->read(feed);
}

ssize_t feed_take_near(struct feed *feed, char *out, size_t max)
{
	ssize_t n = 0;

	if (feed->stream->read_near)
		n = feed->stream->read_near(feed->stream, feed->at, out, max);
	feed->at += n > 0 ? (uint64_t)n : 0;
	return n;
}

bool feed_begin(struct feed *feed, struct pool *pool, size_t max)
{
	feed->piece_max = max < FEED_PIECE ? max : FEED_PIECE;
	feed->job.run = feed_run;
	atomic_store(&feed->state, FEED_READING);
	if (pool_submit(pool, &feed->job))
		return true;
	atomic_store(&feed->state, FEED_IDLE);
	return false;
}

ssize_t feed_take(struct feed *feed, char *out, size_t max)
{
	size_t left = (size_t)feed->len - feed->taken;
	size_t n = left < max ? left : max;

	memcpy(out, feed->bytes + feed->taken, n);
	feed->taken += n;
	feed->at += n;
	if (n == left)
		feed_clear(feed);
	return (ssize_t)n;
}

void feed_clear(struct feed *feed)
{
	feed_done(feed);
	feed->taken = 0;
	atomic_store(&feed->state, FEED_IDLE);
}

void feed_done(struct feed *feed)
{
	free(feed->bytes);
	feed->bytes = NULL;
}
