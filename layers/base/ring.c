/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/ring.h"

#include <string.h>

static void ring_wait_locked(struct ring *ring) REQUIRES(ring->lock);
static void ring_wait_locked(struct ring *ring)
{
	pthread_cond_wait(&ring->changed, &ring->lock.os);
}

/* Copy what fits, up to the end of the buffer; what was copied in bytes. */
static size_t ring_put_locked(struct ring *ring, struct str bytes) REQUIRES(ring->lock);
static size_t ring_put_locked(struct ring *ring, struct str bytes)
{
	size_t tail = (ring->head + ring->used) % ring->cap;
	size_t n = ring->cap - ring->used;

	if (n > ring->cap - tail)
		n = ring->cap - tail;
	if (n > bytes.len)
		n = bytes.len;
	memcpy(ring->bytes + tail, bytes.ptr, n);
	ring->used += n;
	return n;
}

static int ring_write(struct sink *sink, struct str bytes, struct err *err)
{
	struct ring *ring = container_of(sink, struct ring, sink);
	int result = 0;

	lock_take(&ring->lock);
	while (bytes.len > 0) {
		size_t n;

		while (ring->used == ring->cap && !ring->abandoned)
			ring_wait_locked(ring);
		if (ring->abandoned) {
			*err = ring->why;
			result = -1;
			break;
		}
		n = ring_put_locked(ring, bytes);
		bytes.ptr += n;
		bytes.len -= n;
		pthread_cond_broadcast(&ring->changed);
	}
	lock_drop(&ring->lock);
	return result;
}

/* Lend the longest run that lies in one piece. */
static int ring_lend_locked(struct ring *ring, struct str *out, struct err *err)
	REQUIRES(ring->lock);
static int ring_lend_locked(struct ring *ring, struct str *out, struct err *err)
{
	size_t n = ring->used;

	if (n == 0 && ring->why.kind != ERR_NONE) {
		*err = ring->why;
		return -1;
	}
	if (n == 0)
		return 0;
	if (n > ring->cap - ring->head)
		n = ring->cap - ring->head;
	/* Half at most, so that the writer can go on beside the reader. */
	if (n > ring->cap / 2)
		n = ring->cap / 2;
	ring->lent = n;
	*out = (struct str){ring->bytes + ring->head, n};
	return 1;
}

static int ring_read(struct source *source, struct str *out, struct err *err)
{
	struct ring *ring = container_of(source, struct ring, source);
	int result;

	lock_take(&ring->lock);
	if (ring->lent > 0) {
		ring->head = (ring->head + ring->lent) % ring->cap;
		ring->used -= ring->lent;
		ring->lent = 0;
		pthread_cond_broadcast(&ring->changed);
	}
	while (ring->used == 0 && !ring->finished)
		ring_wait_locked(ring);
	result = ring_lend_locked(ring, out, err);
	lock_drop(&ring->lock);
	return result;
}

int ring_init(struct ring *ring, size_t cap, struct err *err)
{
	char *bytes = malloc(cap);

	if (!bytes)
		return err_os(err, ENOMEM, "ring of %zu bytes", cap);
	*ring = (struct ring){
		.sink = {ring_write},
		.source = {ring_read},
		.lock = LOCK_INIT,
		.changed = PTHREAD_COND_INITIALIZER,
		.bytes = bytes,
		.cap = cap,
	};
	return 0;
}

void ring_done(struct ring *ring)
{
	free(ring->bytes);
	ring->bytes = NULL;
	pthread_cond_destroy(&ring->changed);
}

void ring_finish(struct ring *ring)
{
	lock_take(&ring->lock);
	ring->finished = true;
	pthread_cond_broadcast(&ring->changed);
	lock_drop(&ring->lock);
}

void ring_fail(struct ring *ring, const struct err *why)
{
	lock_take(&ring->lock);
	ring->finished = true;
	ring->used = ring->lent; /* what was queued is worth nothing now */
	if (ring->why.kind == ERR_NONE)
		ring->why = *why;
	pthread_cond_broadcast(&ring->changed);
	lock_drop(&ring->lock);
}

void ring_abandon(struct ring *ring, const struct err *why)
{
	lock_take(&ring->lock);
	ring->abandoned = true;
	if (ring->why.kind == ERR_NONE)
		ring->why = *why;
	pthread_cond_broadcast(&ring->changed);
	lock_drop(&ring->lock);
}
