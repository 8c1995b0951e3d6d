/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dial_priv.h - a TCP connection to whichever of several addresses answers.
 *
 * Addresses are tried in their order, the next one when one fails or has not
 * answered for DIAL_STAGGER_MS (after RFC 8305); at most two at a time.
 */
#pragma once

#include "sandbox/address_priv.h"
#include "sandbox/loop_priv.h"

#define DIAL_ADDRESSES_MAX 8
#define DIAL_PARALLEL 2
#define DIAL_STAGGER_MS 250
#define DIAL_ATTEMPT_MS 30000 /* for one address; a SYN that is lost twice takes 7 s */

struct dial;

struct dial_attempt {
	struct dial *dial;
	struct watch watch; /* fd is -1 when there is none */
	struct timer deadline;
};

struct dial {
	struct loop *loop;
	union address addresses[DIAL_ADDRESSES_MAX];
	size_t count;
	size_t next; /* of the addresses not yet tried */
	struct dial_attempt attempts[DIAL_PARALLEL];
	struct timer stagger;
	/* A connected socket, non-blocking, or -1; called once, perhaps at once. */
	void (*done)(void *ctx, int fd);
	void *ctx;
};

void dial_init(struct dial *dial, struct loop *loop, void (*done)(void *ctx, int fd), void *ctx);

/* Give up: done is not called any more. */
void dial_done(struct dial *dial);

/* False when there are enough already. */
bool dial_add(struct dial *dial, const union address *address);

void dial_start(struct dial *dial);
