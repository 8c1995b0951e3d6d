/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.h - the bakes of the daemon, made in turns by a bounded number of
 * threads.
 *
 * A bake is recorded before anybody works on it, and each change of its state
 * in one transaction with its event; so after a kill every bake that is not
 * done is taken up again. Its finished steps have records, and are found.
 *
 * A failure that may pass (fault.h) is retried QUEUE_RETRIES times at most: 5 s
 * after the first failure, then after twice as long each time. Others are not.
 *
 * A newer version does not cancel an older one's bake. During a rebake the
 * version's image stays in service; it is replaced when the new one is there,
 * and never by a failure. Two bakes with equal steps share them while they run
 * (rendezvous.h).
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
	 * Called after each change of what queue_status() answers, in the
	 * thread that made it: for the agent, or for any agent where agent_id
	 * is "". It must be quick.
	 */
	void (*changed)(void *ctx, struct str agent_id);
	void *changed_ctx;
};

struct queue;

/* Take up the open bakes, and start the threads. */
int queue_start(const struct queue_options *options, struct queue **out, struct err *err)
	MUST_CHECK;

/*
 * Start no more; give running bakes so long to end, then stop them and put them
 * back. NULL is ignored.
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
	bool joined; /* an open rebake was joined */
};

/*
 * Bake the latest version again, running the steps from that one on (0 for
 * all). ERR_NOT_FOUND for no such agent, ERR_CONFLICT where the version has no
 * image to bake.
 */
int queue_rebake(struct queue *queue, struct str agent_id, size_t from_step,
		 struct queue_ticket *out, struct err *err) MUST_CHECK;

/* The same in the caller's transaction. */
int queue_put_rebake(struct queue *queue, struct meta *meta, struct str agent_id, size_t from_step,
		     struct queue_ticket *out, struct err *err) MUST_CHECK;

/* Cancel a bake: at once, or soon where it runs. ERR_NOT_FOUND; ERR_CONFLICT where it has ended. */
int queue_cancel(struct queue *queue, struct str bake_id, struct err *err) MUST_CHECK;

/*
 * Put the image back that the latest version served before its last rebake.
 * ERR_NOT_FOUND for no such agent, ERR_CONFLICT for no such image.
 */
int queue_rollback(struct queue *queue, struct str agent_id, struct digest *out, struct err *err)
	MUST_CHECK;

/*
 * imageStatus's answer, with the progress of a running bake (live.h). Version 0
 * is the latest. 1, 0, -1.
 */
int queue_status(struct queue *queue, struct meta *meta, struct str agent_id, int64_t version,
		 struct buf *out, char etag[static STATUS_ETAG_MAX], struct err *err) MUST_CHECK;

struct queue_counts {
	size_t waiting; /* for their turn or for another attempt */
	size_t running;
	uint64_t ended[BAKES_CANCELLED + 1]; /* since the start, by enum bakes_state */
	uint64_t retried;
	struct instruction_counts steps; /* of those that ended well */
};
void queue_count(struct queue *queue, struct queue_counts *out);
