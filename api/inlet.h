/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inlet.h - a body between the thread that receives it, which must not wait,
 * and the one that reads it, which may.
 *
 * At most INLET_BYTES of it are in memory, and nothing before inlet_begin() or
 * the first read: what does not fit stays with the client, until `room` is
 * called because something was read. The reader sleeps until INLET_PIECE of it
 * are there, or the rest, since to wake it for each packet would cost more than
 * to copy one. It gets all that came before it hears of a failure.
 */
#pragma once

#include "layers/base/lock.h"
#include "layers/base/sink.h"

#include <stdbool.h>

#define INLET_BYTES ((size_t)256 * 1024)
#define INLET_PIECE ((size_t)64 * 1024)

struct inlet {
	struct source source; /* for the reader; fails as the writer says, in the end */
	void (*room)(struct inlet *inlet);
	void *ctx; /* of room */
	struct lock lock;
	pthread_cond_t changed;
	/* guarded by lock: */
	char *bytes; /* INLET_BYTES of them once something came and is read */
	size_t head;
	size_t used;
	size_t lent;    /* of used: what the reader still looks at */
	bool begun;     /* somebody reads, or is about to */
	bool full;      /* the writer waits for room */
	bool finished;  /* all of it was offered */
	bool abandoned; /* nobody reads any more */
	struct err why; /* the writer's, where the body ended too early */
};

void inlet_init(struct inlet *inlet, void (*room)(struct inlet *inlet), void *ctx);
void inlet_done(struct inlet *inlet);

/* Somebody is about to read. */
void inlet_begin(struct inlet *inlet);

/*
 * Returns how much was taken; if not all, room is called before more can be.
 * Once nobody reads, all is taken.
 */
size_t inlet_offer(struct inlet *inlet, struct str bytes);
void inlet_finish(struct inlet *inlet);
void inlet_fail(struct inlet *inlet, enum err_kind kind, const char *why);

/* The reader's last call. */
void inlet_abandon(struct inlet *inlet);
