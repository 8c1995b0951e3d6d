/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.h - the bakes of the daemon: what is to be made, in turns, by a bounded
 * number of threads.
 *
 * What is asked for is written before anybody works on it, and each change of
 * its state with the event that tells of it, in one transaction; so after a
 * kill every bake that is not done is taken up again. Its finished steps are
 * records of the store, and are found.
 *
 * What failed in passing is tried again, QUEUE_RETRIES times at most: 5 s after
 * the first failure, then after twice as long each time. What would fail again
 * is not.
 *
 * A newer version cancels no older one's bake. A rebake of a version with an
 * image leaves that in service until there is another, and whatever happens to
 * it. Two bakes with equal steps share them while they run (rendezvous.h).
 *
 * Threads: every call may be made from any, but for queue_start() and
 * queue_stop(). Nothing but a commit is waited for in a transaction.
 */
#pragma once

#include "bake/maker.h"
#include "layers/base/clock.h"

#define QUEUE_PARALLEL_MAX ((size_t)1024) /* each is a thread and a process of ours */
#define QUEUE_RETRIES 5
#define QUEUE_RETRY_MS 5000

struct queue_options {
	struct store *store;
	struct maker *maker;
	size_t parallel;           /* bakes at once, 1 to QUEUE_PARALLEL_MAX */
	const struct clock *clock; /* or NULL */

	/*
	 * Called after each change of what queue_status() answers, in the thread
	 * that made it: agent_id's, or anybody's where that is "". It must be quick.
	 */
	void (*changed)(void *ctx, struct str agent_id);
	void *changed_ctx;
};

struct queue;

/* Take up what is open, and go on. */
int queue_start(const struct queue_options *options, struct queue **out, struct err *err)
	MUST_CHECK;

/*
 * Start no more; give those that run so long to end, then stop them and put
 * them back. NULL is nothing to stop.
 */
void queue_stop(struct queue *queue, int grace_ms);

struct queue_version {
	struct str agent_id;
	struct str slug;
	int64_t version;
	struct str base; /* as the spec calls it, with its platform; "" where it has no image */
};

/*
 * In the transaction that appends a version: its status, and its bake, which
 * starts once that is committed.
 */
int queue_put(struct queue *queue, struct meta *meta, const struct queue_version *version,
	      struct err *err) MUST_CHECK;

struct queue_ticket {
	char bake_id[ID_TEXT_MAX];
	bool joined; /* it was asked for before, and is not done */
};

/*
 * Bake the latest version anew, from that step on (0 for all). ERR_NOT_FOUND
 * for no such agent, ERR_CONFLICT where the version has no image to bake.
 */
int queue_rebake(struct queue *queue, struct str agent_id, size_t from_step,
		 struct queue_ticket *out, struct err *err) MUST_CHECK;

/* The same in the caller's transaction. */
int queue_put_rebake(struct queue *queue, struct meta *meta, struct str agent_id, size_t from_step,
		     struct queue_ticket *out, struct err *err) MUST_CHECK;

/* It is cancelled now, or soon where it runs. ERR_NOT_FOUND; ERR_CONFLICT where it has ended. */
int queue_cancel(struct queue *queue, struct str bake_id, struct err *err) MUST_CHECK;

/*
 * The latest version serves the image again that it served before its last
 * rebake. ERR_NOT_FOUND for no such agent, ERR_CONFLICT where there is none.
 */
int queue_rollback(struct queue *queue, struct str agent_id, struct digest *out, struct err *err)
	MUST_CHECK;

/* imageStatus's answer, what runs included: see live.h. Version 0 is the latest. 1, 0, -1. */
int queue_status(struct queue *queue, struct str agent_id, int64_t version, struct buf *out,
		 char etag[static STATUS_ETAG_MAX], struct err *err) MUST_CHECK;

struct queue_counts {
	size_t waiting; /* for their turn or for another attempt */
	size_t running;
	uint64_t ended[BAKES_CANCELLED + 1]; /* since the start, by enum bakes_state */
	uint64_t retried;
	uint64_t steps; /* of those that ended well */
	uint64_t cached_steps;
};
void queue_count(struct queue *queue, struct queue_counts *out);
