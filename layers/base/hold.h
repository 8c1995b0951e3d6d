/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold.h - a directory's entry that somebody works on.
 *
 * Whoever makes a file or a directory bit by bit holds it by an exclusive flock
 * on the entry itself. The kernel drops that with its last descriptor, however
 * the process ends; so an entry that can be held belongs to nobody, and no
 * timeout has to decide it.
 *
 * Invariant: what is held still has the name that it was opened by. An entry
 * that was moved away between opening and locking is not held, and a held one
 * stays where it is, as long as whoever moves such entries holds them first.
 */
#pragma once

#include "layers/base/err.h"

/*
 * Hold dirfd/name until *out is closed, without waiting. 1 held, 0 somebody
 * else holds it or the name has gone, -1. What is neither file nor directory
 * nobody holds: 1, and *out is -1.
 */
int hold_try(int dirfd, const char *name, int *out, struct err *err) MUST_CHECK;

/* The same, shared with others who call this. */
int hold_share(int dirfd, const char *name, int *out, struct err *err) MUST_CHECK;

/* As hold_try(), but wait for the holder to end. 0: the name has gone, or is another entry's. */
int hold_wait(int dirfd, const char *name, int *out, struct err *err) MUST_CHECK;
