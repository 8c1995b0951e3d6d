/* SPDX-License-Identifier: Apache-2.0 */
/*
 * share_priv.h - one commit for what several threads write to meta/.
 *
 * A commit costs two syncs, whatever is in it. Who comes first leads: the
 * transaction is his, since LMDB's lock belongs to a thread. Who comes meanwhile
 * waits until he commits, and then has a turn in it: a nested transaction, so
 * that who aborts leaves nothing. They all return when that commit is over.
 *
 * Limits: a commit takes at most SHARE_TURNS_MAX turns beside the leader's own,
 * which bounds his wait, what LMDB keeps in memory, and how far the file grows
 * (DB_AHEAD_BYTES).
 */
#pragma once

#include "layers/base/lock.h"
#include "layers/db_priv.h"

#define SHARE_TURNS_MAX ((size_t)7)

struct share_turn {
	MDB_txn *txn; /* owned: the leader's own, or one within it */
	bool leads;
	struct share_turn *next;
	/* guarded by share.lock: */
	bool over;
	struct err err; /* ERR_NONE where it is durable */
};

struct share {
	struct lock lock;
	pthread_cond_t changed;
	/* guarded by lock: */
	bool led;                  /* somebody leads, or is about to */
	MDB_txn *open;             /* the leader's, while others have their turns; else NULL */
	bool busy;                 /* one of them has */
	size_t waiting;            /* for a turn, or to lead */
	size_t turns;              /* given in this transaction */
	struct share_turn *merged; /* those that it has the writes of */
};

void share_init(struct share *share);
void share_done(struct share *share);

/* Lead or have a turn; waits for that. */
int share_begin(struct share *share, const struct db *db, struct share_turn *out, struct err *err)
	MUST_CHECK;

/* Durable when this returns 0; the turn is over whatever is returned. */
int share_commit(struct share *share, const struct db *db, struct share_turn *turn, struct err *err)
	MUST_CHECK;
void share_abort(struct share *share, struct share_turn *turn);
