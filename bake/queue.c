/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.c - the threads, and how new bakes come to them: after each commit that
 * added some to the table, those behind the last known one are read.
 */
#include "bake/queue_priv.h"

#define LOG_MODULE "bake"
#include "layers/base/array.h"
#include "layers/base/log.h"
#include "layers/base/thread.h"

#include <assert.h>
#include <stdio.h>
#include <time.h>

#define QUEUE_LOOK_MS ((int64_t)60000) /* a clock that was set is noticed after that */
#define QUEUE_LOAD_MAX ((size_t)10000) /* bakes read in one transaction */

int64_t queue_now_ms(const struct queue *queue)
{
	return clock_ask_ms(queue->options.clock);
}

void queue_say_changed(const struct queue *queue, struct str agent_id)
{
	if (queue->options.changed)
		queue->options.changed(queue->options.changed_ctx, agent_id);
}

void queue_wake(void *ctx)
{
	struct queue *queue = ctx;

	lock_take(&queue->lock);
	queue->stale = true;
	pthread_cond_broadcast(&queue->changed);
	lock_drop(&queue->lock);
	queue_say_changed(queue, STR(""));
}

struct queue_load {
	struct turn *turns; /* owned */
	size_t count;
};

static int queue_load_one(void *ctx, const struct bakes_record *record, struct err *err)
{
	struct queue_load *load = ctx;
	struct turn turn = {.version = record->version,
			    .rebake = record->rebake,
			    .due_ms = record->state == BAKES_WAITING ? record->retry_ms : 0};

	(void)err;
	memcpy(turn.bake_id, record->id, sizeof(turn.bake_id));
	memcpy(turn.agent_id, record->agent_id, sizeof(turn.agent_id));
	load->turns = array_grow(load->turns, load->count, sizeof(*load->turns));
	load->turns[load->count++] = turn;
	return load->count == QUEUE_LOAD_MAX;
}

/* 1 there may be more, 0, -1. */
static int queue_read(const struct queue *queue, const char *after, struct queue_load *out,
		      struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;

	if (meta_begin(queue->options.store, META_READ, &meta, err) < 0)
		return -1;
	return bakes_each_open(meta, str_of(after), queue_load_one, out, err);
}

/* Add as many as there is room for; the table keeps the others. */
static void queue_add_locked(struct queue *queue, const struct queue_load *load)
	REQUIRES(queue->lock);
static void queue_add_locked(struct queue *queue, const struct queue_load *load)
{
	for (size_t i = 0; i < load->count; i++) {
		if (turns_waiting(queue->turns) >= TURNS_MAX) {
			queue->stale = true;
			return;
		}
		turns_add(queue->turns, &load->turns[i]);
		memcpy(queue->last_id, load->turns[i].bake_id, sizeof(queue->last_id));
	}
}

/* Read new bakes from the table, without the lock. False: that failed. */
static bool queue_load_locked(struct queue *queue) REQUIRES(queue->lock);
static bool queue_load_locked(struct queue *queue)
{
	struct queue_load load = {NULL, 0};
	char after[ID_TEXT_MAX];
	struct err err;
	int more;

	queue->stale = false;
	queue->loading = true;
	memcpy(after, queue->last_id, sizeof(after));
	lock_drop(&queue->lock);
	more = queue_read(queue, after, &load, &err);
	if (more < 0)
		log_warn("bakes not read why=\"%s\"", err.text);
	lock_take(&queue->lock);
	queue->loading = false;
	if (more != 0)
		queue->stale = true;
	if (more >= 0)
		queue_add_locked(queue, &load);
	pthread_cond_broadcast(&queue->changed);
	free(load.turns);
	return more >= 0;
}

static void queue_wait_locked(struct queue *queue, int64_t wait_ms) REQUIRES(queue->lock);
static void queue_wait_locked(struct queue *queue, int64_t wait_ms)
{
	int64_t most = wait_ms < QUEUE_LOOK_MS ? wait_ms : QUEUE_LOOK_MS;
	struct timespec end;

	(void)clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += most / 1000;
	end.tv_nsec += (long)(most % 1000) * 1000000;
	if (end.tv_nsec >= 1000000000) {
		end.tv_sec++;
		end.tv_nsec -= 1000000000;
	}
	(void)pthread_cond_timedwait(&queue->changed, &queue->lock.os, &end);
}

/* The next turn. False: there are no more. */
static bool queue_next_locked(struct queue *queue, struct queue_slot *slot, struct turn *out)
	REQUIRES(queue->lock);
static bool queue_next_locked(struct queue *queue, struct queue_slot *slot, struct turn *out)
{
	while (!queue->stopping) {
		int64_t now_ms = queue_now_ms(queue);
		int64_t due_ms = TURNS_NEVER;
		bool full = turns_waiting(queue->turns) >= TURNS_MAX;

		if (queue->stale && !queue->loading && !full) {
			if (!queue_load_locked(queue))
				queue_wait_locked(queue, QUEUE_AGAIN_MS);
			continue;
		}
		if (turns_take(queue->turns, now_ms, out, &due_ms)) {
			memcpy(slot->bake_id, out->bake_id, sizeof(slot->bake_id));
			slot->unwanted = false;
			return true;
		}
		queue_wait_locked(queue, due_ms == TURNS_NEVER ? QUEUE_LOOK_MS : due_ms - now_ms);
	}
	return false;
}

static void queue_end_turn_locked(struct queue *queue, struct queue_slot *slot,
				  const struct turn *turn, int64_t again_ms) REQUIRES(queue->lock);
static void queue_end_turn_locked(struct queue *queue, struct queue_slot *slot,
				  const struct turn *turn, int64_t again_ms)
{
	struct turn again = *turn;

	turns_end(queue->turns, turn->bake_id);
	slot->bake_id[0] = '\0';
	again.due_ms = again_ms;
	if (again_ms != QUEUE_DONE)
		turns_add(queue->turns, &again);
	pthread_cond_broadcast(&queue->changed);
}

static void *queue_slot_main(void *ctx)
{
	struct queue_slot *slot = ctx;
	struct queue *queue = slot->queue;
	struct turn turn;

	lock_take(&queue->lock);
	while (queue_next_locked(queue, slot, &turn)) {
		int64_t again_ms;

		lock_drop(&queue->lock);
		again_ms = queue_run(slot, &turn);
		lock_take(&queue->lock);
		queue_end_turn_locked(queue, slot, &turn, again_ms);
	}
	lock_drop(&queue->lock);
	return NULL;
}

struct queue_found {
	char (*ids)[ID_TEXT_MAX]; /* owned */
	size_t count;
};

static int queue_find_running(void *ctx, const struct bakes_record *record, struct err *err)
{
	struct queue_found *found = ctx;

	(void)err;
	if (record->state != BAKES_RUNNING)
		return 0;
	found->ids = array_grow(found->ids, found->count, sizeof(*found->ids));
	memcpy(found->ids[found->count++], record->id, ID_TEXT_MAX);
	return 0;
}

/* Put back the bakes that ran when the daemon died: at most as many as ran at once. */
static int queue_recover(struct queue *queue, struct err *err)
{
	struct queue_found found = {NULL, 0};
	AUTO(meta) struct meta *meta = NULL;
	int result;

	if (meta_begin(queue->options.store, META_READ, &meta, err) < 0)
		return -1;
	result = bakes_each_open(meta, STR(""), queue_find_running, &found, err);
	meta_abort(steal_ptr(&meta));
	for (size_t i = 0; result == 0 && i < found.count; i++)
		result = queue_put_back(queue, str_of(found.ids[i]), err);
	free(found.ids);
	return result;
}

static void queue_free(struct queue *queue)
{
	if (!queue)
		return;
	turns_free(queue->turns);
	live_free(queue->live);
	free(queue->slots);
	(void)pthread_cond_destroy(&queue->changed);
	free(queue);
}

static struct queue *queue_new(const struct queue_options *options)
{
	struct queue *queue = calloc(1, sizeof(*queue));
	pthread_condattr_t monotonic;

	if (!queue)
		abort();
	assert(options->parallel >= 1 && options->parallel <= QUEUE_PARALLEL_MAX);
	*queue = (struct queue){
		.options = *options,
		.live = live_new(options->parallel),
		.slots = calloc(options->parallel, sizeof(*queue->slots)),
		.lock = LOCK_INIT,
		.turns = turns_new(),
		.stale = true,
	};
	if (!queue->slots || pthread_condattr_init(&monotonic) != 0 ||
	    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) != 0 ||
	    pthread_cond_init(&queue->changed, &monotonic) != 0)
		abort();
	(void)pthread_condattr_destroy(&monotonic);
	return queue;
}

int queue_start(const struct queue_options *options, struct queue **out, struct err *err)
{
	struct queue *queue = queue_new(options);

	if (queue_recover(queue, err) < 0) {
		queue_free(queue);
		return -1;
	}
	for (; queue->started < options->parallel; queue->started++) {
		struct queue_slot *slot = &queue->slots[queue->started];

		*slot = (struct queue_slot){.queue = queue, .place = queue->started};
		if (thread_start(&slot->thread, queue_slot_main, slot, err) < 0) {
			queue_stop(queue, 0);
			return -1;
		}
	}
	*out = queue;
	return 0;
}

static void queue_drop_slot_locked(struct queue *queue, size_t i) REQUIRES(queue->lock);
static void queue_drop_slot_locked(struct queue *queue, size_t i)
{
	struct queue_slot *slot = &queue->slots[i];

	slot->unwanted = true;
	if (slot->cancel)
		cancel_raise(slot->cancel);
}

/* Wait until nothing runs, or for so long. */
static void queue_drain_locked(struct queue *queue, int grace_ms) REQUIRES(queue->lock);
static void queue_drain_locked(struct queue *queue, int grace_ms)
{
	int64_t end_ms = clock_monotonic_ms() + grace_ms;
	int64_t left_ms = grace_ms;

	while (left_ms > 0 && turns_running(queue->turns) > 0) {
		queue_wait_locked(queue, left_ms);
		left_ms = end_ms - clock_monotonic_ms();
	}
}

void queue_stop(struct queue *queue, int grace_ms)
{
	if (!queue)
		return;
	lock_take(&queue->lock);
	queue->stopping = true;
	pthread_cond_broadcast(&queue->changed);
	queue_drain_locked(queue, grace_ms);
	for (size_t i = 0; i < queue->started; i++)
		queue_drop_slot_locked(queue, i);
	lock_drop(&queue->lock);
	for (size_t i = 0; i < queue->started; i++)
		(void)pthread_join(queue->slots[i].thread, NULL);
	queue_free(queue);
}

/* 1 it is cancelled; 0 it runs, and will be; -1. */
static int queue_write_cancel(struct queue *queue, struct str bake_id, struct err *err)
{
	auto_bakes_record struct bakes_record record = {0};
	AUTO(meta) struct meta *meta = NULL;
	bool runs;
	int found;

	if (meta_begin(queue->options.store, META_WRITE, &meta, err) < 0)
		return -1;
	found = bakes_find(meta, bake_id, &record, err);
	if (found == 0)
		return err_set(err, ERR_NOT_FOUND, "no bake " STR_FMT, STR_ARG(bake_id));
	if (found == 1 && !bakes_is_open(record.state))
		return err_set(err, ERR_CONFLICT, "bake " STR_FMT " has ended: %s",
			       STR_ARG(bake_id), bakes_state_name(record.state));
	if (found < 0)
		return -1;
	runs = record.state == BAKES_RUNNING;
	record.cancelling = runs;
	if (runs ? bakes_put(meta, &record, err) < 0
		 : queue_put_cancelled(meta, &record, queue_now_ms(queue), err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err) < 0 ? -1 : !runs;
}

int queue_cancel(struct queue *queue, struct str bake_id, struct err *err)
{
	int done = queue_write_cancel(queue, bake_id, err);

	if (done < 0)
		return -1;
	lock_take(&queue->lock);
	if (done == 1 && turns_drop(queue->turns, bake_id))
		queue->counts.ended[BAKES_CANCELLED]++;
	for (size_t i = 0; i < queue->started; i++) {
		if (str_equal(str_of(queue->slots[i].bake_id), bake_id))
			queue_drop_slot_locked(queue, i);
	}
	lock_drop(&queue->lock);
	queue_say_changed(queue, STR(""));
	return 0;
}

int queue_status(struct queue *queue, struct meta *meta, struct str agent_id, int64_t version,
		 struct buf *out, char etag[static STATUS_ETAG_MAX], struct err *err)
{
	return live_read(queue->live, meta, agent_id, version, out, etag, err);
}

void queue_count(struct queue *queue, struct queue_counts *out)
{
	lock_take(&queue->lock);
	if (queue->stale && !queue->loading)
		(void)queue_load_locked(queue); /* busy threads have not read the table lately */
	*out = queue->counts;
	out->waiting = turns_waiting(queue->turns);
	out->running = turns_running(queue->turns);
	lock_drop(&queue->lock);
}
