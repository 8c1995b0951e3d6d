/* SPDX-License-Identifier: Apache-2.0 */
/* queue_priv.h - a queue's threads, and the bake that each works on. */
#pragma once

#include "bake/live.h"
#include "bake/queue.h"
#include "bake/turns.h"
#include "layers/base/lock.h"

#define QUEUE_AGAIN_MS 5000 /* after a transaction that could not be made */

/* A thread, and its place in struct live. */
struct queue_slot {
	struct queue *queue;
	size_t place;
	pthread_t thread;
	/* guarded by the queue's lock: */
	char bake_id[ID_TEXT_MAX]; /* "" while there is none */
	bool unwanted;             /* somebody cancelled it, or the queue stops */
	struct cancel *cancel;     /* of the bake that is made, or NULL; borrowed */
};

struct queue {
	struct queue_options options;
	struct live *live;
	struct queue_slot *slots; /* owned; options.parallel of them */
	size_t started;           /* threads */
	struct lock lock;
	pthread_cond_t changed;
	/* guarded by lock: */
	struct turns *turns;
	char last_id[ID_TEXT_MAX]; /* the last bake that was read from the table */
	bool stale;                /* the table may have more */
	bool loading;              /* a thread is reading it */
	bool stopping;
	struct queue_counts counts;
};

/* What a slot works on. */
struct queue_work {
	struct queue_slot *slot;
	struct bakes_record record; /* owned */
	json_t *status;             /* owned; as it is stored */
	char etag[STATUS_ETAG_MAX]; /* of that */
	struct digest base;         /* all zero for none, here and below */
	struct digest previous;
};

#define QUEUE_DONE INT64_MIN

/* queue_run.c: make what a turn names. When to try it again, or QUEUE_DONE. */
int64_t queue_run(struct queue_slot *slot, const struct turn *turn);

/* queue_end.c: each is one transaction, or part of one. */
int queue_end_ready(struct queue_work *work, const struct maker_result *result, struct err *err)
	MUST_CHECK;
int queue_end_failed(struct queue_work *work, const struct maker_result *result,
		     const struct err *why, struct err *err) MUST_CHECK;
int queue_put_back(struct queue *queue, struct str bake_id, struct err *err) MUST_CHECK;
int queue_put_cancelled(struct meta *meta, struct bakes_record *record, int64_t now_ms,
			struct err *err) MUST_CHECK;

int queue_names(struct meta *meta, const struct bakes_record *record, struct maker_names *out,
		struct err *err) MUST_CHECK;

/* Append an event about a bake. data is taken over, and may be NULL. */
int queue_tell(struct meta *meta, const char *type, const struct bakes_record *record, json_t *data,
	       int64_t now_ms, struct err *err) MUST_CHECK;

static inline void auto_queue_work_release(struct queue_work *slot)
{
	bakes_record_done(&slot->record);
	json_decref(slot->status);
}

int64_t queue_now_ms(const struct queue *queue);

/* Look into the table of bakes again; ctx is the queue. */
void queue_wake(void *ctx);
void queue_say_changed(const struct queue *queue, struct str agent_id);
