/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uploads_fresh.h - upload sessions of this daemon that nothing came for yet.
 *
 * Most uploads are one body, which goes into the store as it comes: the file of
 * their session is made, for a daemon that is killed, and is removed in the end,
 * and need not be opened, read and locked in between. What is not known here, or no
 * more, is what its file says (uploads.h).
 *
 * Memory: an id and the name of a repository for each; their number is bounded by
 * who adds them. Threads: any may call; one that is held is one request's.
 */
#pragma once

#include "layers/base/lock.h"
#include "layers/base/ulid.h"

#include <stdbool.h>

struct uploads_fresh_one;

struct uploads_fresh {
	struct lock lock;
	/* guarded by lock: */
	struct uploads_fresh_one **all; /* owned, in no order */
	size_t count;
};

void uploads_fresh_init(struct uploads_fresh *fresh);
void uploads_fresh_done(struct uploads_fresh *fresh);

void uploads_fresh_add(struct uploads_fresh *fresh, const char *id, struct str repository);

/* Whether this repository has it, whoever holds it. */
bool uploads_fresh_has(struct uploads_fresh *fresh, struct str id, struct str repository);

/* 1 it is the caller's from now on, 0 there is none, -1 it is another's (ERR_CONFLICT). */
int uploads_fresh_hold(struct uploads_fresh *fresh, struct str id, struct str repository,
		       struct err *err) MUST_CHECK;

/* By who holds it: it stays, used just now; or is fresh no more. */
void uploads_fresh_let_go(struct uploads_fresh *fresh, const char *id);
void uploads_fresh_end(struct uploads_fresh *fresh, const char *id);

/* Whether it is known, whoever's it is. */
bool uploads_fresh_knows(struct uploads_fresh *fresh, struct str id);

/* Those that nobody holds, and that nobody has used for so long, are as all others. */
void uploads_fresh_forget(struct uploads_fresh *fresh, int64_t now_ms, int64_t idle_ms);
