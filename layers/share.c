/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/share_priv.h"

void share_init(struct share *share)
{
	*share = (struct share){.lock = LOCK_INIT};
	(void)pthread_cond_init(&share->changed, NULL);
}

void share_done(struct share *share)
{
	(void)pthread_cond_destroy(&share->changed);
}

static bool share_has_room_locked(const struct share *share) REQUIRES(share->lock);
static bool share_has_room_locked(const struct share *share)
{
	return share->open && !share->busy && share->turns < SHARE_TURNS_MAX;
}

/* The leader's transaction, for a turn in it; NULL: the caller leads. */
static MDB_txn *share_await(struct share *share)
{
	MDB_txn *open = NULL;

	lock_take(&share->lock);
	share->waiting++;
	while (share->led && !share_has_room_locked(share))
		pthread_cond_wait(&share->changed, &share->lock.os);
	share->waiting--;
	if (share->led) {
		open = share->open;
		share->busy = true;
		share->turns++;
	}
	share->led = true;
	lock_drop(&share->lock);
	return open;
}

/* The caller leads no more, or his turn has ended. */
static void share_leave_locked(struct share *share, const struct share_turn *turn)
	REQUIRES(share->lock);
static void share_leave_locked(struct share *share, const struct share_turn *turn)
{
	if (turn->leads)
		share->led = false;
	else
		share->busy = false;
	pthread_cond_broadcast(&share->changed);
}

static void share_leave(struct share *share, const struct share_turn *turn)
{
	lock_take(&share->lock);
	share_leave_locked(share, turn);
	lock_drop(&share->lock);
}

int share_begin(struct share *share, const struct db *db, struct share_turn *out, struct err *err)
{
	MDB_txn *open = share_await(share);
	int result = 0;

	*out = (struct share_turn){.leads = !open};
	if (open) {
		int rc = mdb_txn_begin(db->env, open, 0, &out->txn);

		result = rc == 0 ? 0 : db_fail(db, rc, err);
	} else {
		result = db_begin(db, DB_WRITE, &out->txn, err);
	}
	if (result < 0)
		share_leave(share, out);
	return result;
}

void share_abort(struct share *share, struct share_turn *turn)
{
	mdb_txn_abort(turn->txn);
	share_leave(share, turn);
}

/* Let those in who wait. Returns who wrote something. */
static struct share_turn *share_open(struct share *share, MDB_txn *txn)
{
	struct share_turn *merged;

	lock_take(&share->lock);
	share->open = txn;
	share->turns = 0;
	pthread_cond_broadcast(&share->changed);
	while (share->busy || (share->waiting > 0 && share->turns < SHARE_TURNS_MAX))
		pthread_cond_wait(&share->changed, &share->lock.os);
	share->open = NULL;
	merged = steal_ptr(&share->merged);
	lock_drop(&share->lock);
	return merged;
}

static int share_commit_all(struct share *share, const struct db *db, struct share_turn *turn,
			    struct err *err)
{
	struct share_turn *merged = share_open(share, turn->txn);
	int result = db_commit(db, turn->txn, err);

	lock_take(&share->lock);
	for (; merged; merged = merged->next) {
		if (result < 0)
			merged->err = *err;
		merged->over = true;
	}
	share_leave_locked(share, turn);
	lock_drop(&share->lock);
	return result;
}

/* Put the turn's writes into the leader's transaction, and wait until that is over. */
static int share_merge(struct share *share, const struct db *db, struct share_turn *turn,
		       struct err *err)
{
	int result = db_commit(db, turn->txn, err);

	lock_take(&share->lock);
	if (result == 0) {
		turn->next = share->merged;
		share->merged = turn;
	}
	share_leave_locked(share, turn);
	while (result == 0 && !turn->over)
		pthread_cond_wait(&share->changed, &share->lock.os);
	lock_drop(&share->lock);
	if (result < 0 || turn->err.kind == ERR_NONE)
		return result;
	*err = turn->err;
	return -1;
}

int share_commit(struct share *share, const struct db *db, struct share_turn *turn, struct err *err)
{
	return turn->leads ? share_commit_all(share, db, turn, err)
			   : share_merge(share, db, turn, err);
}
