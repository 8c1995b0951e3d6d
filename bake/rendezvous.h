/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rendezvous.h - where the askers of a step meet its worker.
 *
 *	run/step/<key>         a socket, from the claim to the end of the step
 *	run/step/<key>.lock    flock'ed by the worker for as long as it lives
 *
 * Whoever holds the lock may start the worker, and gives the lock to it; so
 * identical steps run once, in whatever process they are asked for, and a
 * worker that dies is replaced by the next asker.
 */
#pragma once

#include "layers/digest.h"
#include "layers/store.h"

/* 1 and a connection, 0 nobody listens, -1. */
int rendezvous_join(struct store *store, const struct digest *key, int *out_fd, struct err *err)
	MUST_CHECK;

/* 1 and both descriptors, 0 when another holds the key, -1. */
int rendezvous_claim(struct store *store, const struct digest *key, int *out_lockfd,
		     int *out_listener, struct err *err) MUST_CHECK;

/* Remove what killed workers left. */
void rendezvous_sweep(struct store *store);

/* By the worker, near its end: nobody may join any more. */
void rendezvous_close(struct store *store, const struct digest *key);

/* By the worker, last: the names are gone, the lock with the process. */
void rendezvous_leave(struct store *store, const struct digest *key);
