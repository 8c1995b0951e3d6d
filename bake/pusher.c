/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pusher.c - one thread looks after slots, each of which has a push and its
 * thread:
 *
 *	FREE -> BUSY    something is due
 *	BUSY -> DONE    its thread is through, and has written how it went
 *	DONE -> FREE    it is joined; a while later where that could not be written
 */
#include "bake/pusher.h"

#define LOG_MODULE "bake"
#include "layers/base/lock.h"
#include "layers/base/log.h"
#include "layers/base/thread.h"

#include <time.h>

#define PUSHER_AGAIN_MS ((int64_t)5000) /* after a table that could not be read or written */
#define PUSHER_LOOK_MS ((int64_t)60000) /* a clock that was set is noticed after that */

enum pusher_state { PUSHER_FREE, PUSHER_BUSY, PUSHER_DONE };

struct pusher_slot {
	struct pusher *pusher;
	struct pushes_record record; /* owned */
	struct cancel cancel;
	pthread_t thread;
	int64_t end_ms;  /* on the monotonic clock; here and below */
	int64_t free_ms; /* not before then */
	/* guarded by the pusher's lock: */
	enum pusher_state state;
	bool late; /* it was cancelled since its time was over */
};

struct pusher {
	struct pusher_options options;
	struct pusher_slot slots[PUSHER_PARALLEL];
	pthread_t thread;
	struct lock lock;
	pthread_cond_t changed;
	/* guarded by lock: */
	bool woken;
	bool ended;
};

static enum pusher_state pusher_state(struct pusher_slot *slot)
{
	enum pusher_state state;

	lock_take(&slot->pusher->lock);
	state = slot->state;
	lock_drop(&slot->pusher->lock);
	return state;
}

static void pusher_set_state(struct pusher_slot *slot, enum pusher_state state)
{
	lock_take(&slot->pusher->lock);
	slot->state = state;
	lock_drop(&slot->pusher->lock);
}

static int pusher_settle(const struct pusher *pusher, const struct pushes_record *record,
			 const struct err *why, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;

	if (meta_begin(pusher->options.store, META_WRITE, &meta, err) < 0 ||
	    pushes_settle(meta, record, why, clock_ask_ms(pusher->options.clock), err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}

/* False where it was cut short by the pusher's end: it stays to be done. */
static bool pusher_judge(struct pusher_slot *slot, struct err *why)
{
	struct pusher *pusher = slot->pusher;
	bool late;
	bool ended;

	lock_take(&pusher->lock);
	late = slot->late;
	ended = pusher->ended;
	lock_drop(&pusher->lock);
	if (late)
		(void)err_set(why, ERR_TIMEOUT, "not pushed within %lld ms",
			      (long long)pusher->options.timeout_ms);
	else if (ended)
		return false;
	log_warn("image not pushed bake=%s to=%s why=\"%s\"", slot->record.bake_id,
		 slot->record.reference, why->text);
	return true;
}

static void *pusher_push(void *ctx)
{
	struct pusher_slot *slot = ctx;
	struct pusher *pusher = slot->pusher;
	const struct pusher_options *options = &pusher->options;
	struct err why = {0};
	struct err err = {0};
	int pushed = options->push(options->push_ctx, str_of(slot->record.reference),
				   &slot->record.image, &slot->cancel, &why);

	if ((pushed == 0 || pusher_judge(slot, &why)) &&
	    pusher_settle(pusher, &slot->record, pushed < 0 ? &why : NULL, &err) < 0) {
		log_warn("push not recorded bake=%s why=\"%s\"", slot->record.bake_id, err.text);
		slot->free_ms = clock_monotonic_ms() + PUSHER_AGAIN_MS;
	}
	pusher_set_state(slot, PUSHER_DONE);
	pusher_wake(pusher);
	return NULL;
}

static struct str pusher_host(const struct pushes_record *record)
{
	struct str rest = str_of(record->reference);
	struct str host;

	(void)str_cut(&rest, '/', &host);
	return host;
}

/* A pushes_may_fn: it is not under way, nor are too many to its registry. */
static bool pusher_may(void *ctx, const struct pushes_record *record)
{
	struct pusher *pusher = ctx;
	size_t same = 0;

	for (size_t i = 0; i < PUSHER_PARALLEL; i++) {
		struct pusher_slot *slot = &pusher->slots[i];

		if (pusher_state(slot) == PUSHER_FREE)
			continue;
		if (strcmp(slot->record.reference, record->reference) == 0)
			return false;
		same += str_equal(pusher_host(&slot->record), pusher_host(record));
	}
	return same < PUSHER_HOST_MAX;
}

/* 1 it is due now, 0 none is, -1; *wait_ms until the next is. */
static int pusher_find(struct pusher *pusher, struct pushes_record *out, int64_t *wait_ms,
		       struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	int64_t now_ms = clock_ask_ms(pusher->options.clock);
	int64_t next_ms;
	int found;

	if (meta_begin(pusher->options.store, META_READ, &meta, err) < 0)
		return -1;
	found = pushes_find_due(meta, now_ms, pusher_may, pusher, out, &next_ms, err);
	*wait_ms = next_ms == INT64_MAX ? PUSHER_LOOK_MS : next_ms - now_ms;
	return found;
}

static struct pusher_slot *pusher_free_slot(struct pusher *pusher)
{
	for (size_t i = 0; i < PUSHER_PARALLEL; i++) {
		if (pusher_state(&pusher->slots[i]) == PUSHER_FREE)
			return &pusher->slots[i];
	}
	return NULL;
}

static int pusher_begin(struct pusher_slot *slot, struct err *err)
{
	struct pusher *pusher = slot->pusher;

	if (cancel_init(&slot->cancel, err) < 0)
		return -1;
	slot->end_ms = clock_monotonic_ms() + pusher->options.timeout_ms;
	slot->free_ms = 0;
	lock_take(&pusher->lock);
	slot->state = PUSHER_BUSY;
	slot->late = false;
	lock_drop(&pusher->lock);
	if (thread_start(&slot->thread, pusher_push, slot, err) == 0)
		return 0;
	pusher_set_state(slot, PUSHER_FREE);
	cancel_done(&slot->cancel);
	return -1;
}

/* Start whatever is due and has room; how long until there is more, at most. */
static int64_t pusher_start_due(struct pusher *pusher)
{
	int64_t wait_ms = PUSHER_LOOK_MS;
	struct pusher_slot *slot = pusher_free_slot(pusher);
	struct err err = {0};
	int found = 0;

	while (slot) {
		found = pusher_find(pusher, &slot->record, &wait_ms, &err);
		if (found == 1)
			found = pusher_begin(slot, &err) < 0 ? -1 : 1;
		if (found != 1)
			break;
		slot = pusher_free_slot(pusher);
	}
	if (found < 0) {
		log_warn("pushes not started why=\"%s\"", err.text);
		wait_ms = PUSHER_AGAIN_MS;
	}
	return wait_ms;
}

static void pusher_reap(struct pusher_slot *slot)
{
	(void)pthread_join(slot->thread, NULL);
	cancel_done(&slot->cancel);
	pushes_record_done(&slot->record);
	pusher_set_state(slot, PUSHER_FREE);
}

static void pusher_reap_done(struct pusher *pusher)
{
	for (size_t i = 0; i < PUSHER_PARALLEL; i++) {
		struct pusher_slot *slot = &pusher->slots[i];

		if (pusher_state(slot) == PUSHER_DONE && slot->free_ms <= clock_monotonic_ms())
			pusher_reap(slot);
	}
}

static void pusher_stop_late(struct pusher_slot *slot)
{
	lock_take(&slot->pusher->lock);
	slot->late = true;
	lock_drop(&slot->pusher->lock);
	cancel_raise(&slot->cancel);
}

/* Stop what is late; how long until a slot is to be looked at again, at most. */
static int64_t pusher_look_after(struct pusher *pusher)
{
	int64_t now_ms = clock_monotonic_ms();
	int64_t wait_ms = PUSHER_LOOK_MS;

	for (size_t i = 0; i < PUSHER_PARALLEL; i++) {
		struct pusher_slot *slot = &pusher->slots[i];
		enum pusher_state state = pusher_state(slot);
		int64_t until_ms = state == PUSHER_DONE ? slot->free_ms : slot->end_ms;

		if (state != PUSHER_FREE && until_ms > now_ms && until_ms - now_ms < wait_ms)
			wait_ms = until_ms - now_ms;
		if (state == PUSHER_BUSY && until_ms <= now_ms)
			pusher_stop_late(slot);
	}
	return wait_ms;
}

/* Until somebody wakes us, or so long. False: it has ended. */
static bool pusher_wait(struct pusher *pusher, int64_t wait_ms)
{
	int64_t end_ms = clock_now_ms() + wait_ms;
	const struct timespec end = {end_ms / 1000, (end_ms % 1000) * 1000000};
	int rc = 0;
	bool ended;

	lock_take(&pusher->lock);
	while (rc == 0 && !pusher->woken && !pusher->ended)
		rc = pthread_cond_timedwait(&pusher->changed, &pusher->lock.os, &end);
	pusher->woken = false;
	ended = pusher->ended;
	lock_drop(&pusher->lock);
	return !ended;
}

/* Each takes its time to leave, so all are told before one is waited for. */
static void pusher_end_all(struct pusher *pusher)
{
	for (size_t i = 0; i < PUSHER_PARALLEL; i++) {
		if (pusher_state(&pusher->slots[i]) == PUSHER_BUSY)
			cancel_raise(&pusher->slots[i].cancel);
	}
	for (size_t i = 0; i < PUSHER_PARALLEL; i++) {
		if (pusher_state(&pusher->slots[i]) != PUSHER_FREE)
			pusher_reap(&pusher->slots[i]);
	}
}

static void *pusher_run(void *ctx)
{
	struct pusher *pusher = ctx;
	int64_t wait_ms = 0;

	while (pusher_wait(pusher, wait_ms)) {
		int64_t due_ms;
		int64_t look_ms;

		pusher_reap_done(pusher);
		due_ms = pusher_start_due(pusher);
		look_ms = pusher_look_after(pusher);
		wait_ms = look_ms < due_ms ? look_ms : due_ms;
	}
	pusher_end_all(pusher);
	return NULL;
}

void pusher_wake(void *ctx)
{
	struct pusher *pusher = ctx;

	lock_take(&pusher->lock);
	pusher->woken = true;
	pthread_cond_signal(&pusher->changed);
	lock_drop(&pusher->lock);
}

int pusher_start(const struct pusher_options *options, struct pusher **out, struct err *err)
{
	struct pusher *pusher = calloc(1, sizeof(*pusher));

	if (!pusher)
		abort();
	*pusher = (struct pusher){
		.options = *options, .lock = LOCK_INIT, .changed = PTHREAD_COND_INITIALIZER};
	if (pusher->options.timeout_ms == 0)
		pusher->options.timeout_ms = PUSHER_TIMEOUT_MS;
	for (size_t i = 0; i < PUSHER_PARALLEL; i++)
		pusher->slots[i].pusher = pusher;
	if (thread_start(&pusher->thread, pusher_run, pusher, err) < 0) {
		free(pusher);
		return -1;
	}
	*out = pusher;
	return 0;
}

void pusher_stop(struct pusher *pusher)
{
	if (!pusher)
		return;
	lock_take(&pusher->lock);
	pusher->ended = true;
	pthread_cond_signal(&pusher->changed);
	lock_drop(&pusher->lock);
	(void)pthread_join(pusher->thread, NULL);
	for (size_t i = 0; i < PUSHER_PARALLEL; i++)
		pushes_record_done(&pusher->slots[i].record);
	free(pusher);
}
