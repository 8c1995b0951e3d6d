/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.h - a bounded queue of bytes between two threads.
 *
 * One thread writes (ring.sink), one reads (ring.source). A full ring blocks
 * the writer, an empty one the reader, so a chain of threads runs at the pace
 * of its slowest link in memory that is fixed at ring_init().
 *
 * The writer ends with ring_finish() (the reader sees the end) or ring_fail()
 * (the reader sees that error). A reader that gives up calls ring_abandon(),
 * and the writer's next write fails with the reader's error.
 */
#pragma once

#include "layers/base/lock.h"
#include "layers/base/sink.h"

#include <stdbool.h>

struct ring {
	struct sink sink;
	struct source source;
	struct lock lock;
	pthread_cond_t changed;
	/* guarded by lock: */
	char *bytes;
	size_t cap;
	size_t head;    /* of the next byte to read */
	size_t used;    /* bytes held, lent ones included */
	size_t lent;    /* bytes the reader still looks at */
	bool finished;  /* no more will be written */
	bool abandoned; /* no more will be read */
	struct err why; /* of the side that failed */
};

int ring_init(struct ring *ring, size_t cap, struct err *err) MUST_CHECK;
void ring_done(struct ring *ring);

void ring_finish(struct ring *ring);
void ring_fail(struct ring *ring, const struct err *why);
void ring_abandon(struct ring *ring, const struct err *why);
