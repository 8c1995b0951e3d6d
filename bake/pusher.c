/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/pusher.h"

#define LOG_MODULE "bake"
#include "layers/base/lock.h"
#include "layers/base/log.h"
#include "layers/base/thread.h"

#include <time.h>

#define PUSHER_AGAIN_MS ((int64_t)5000) /* after a table that could not be read or written */
#define PUSHER_LOOK_MS ((int64_t)60000) /* a clock that was set is noticed after that */

struct pusher {
	struct pusher_options options;
	struct cancel cancel;
	pthread_t thread;
	struct lock lock;
	pthread_cond_t changed;
	/* guarded by lock: */
	bool woken;
	bool ended;
};

/* 1 it is due now, 0 none is, -1; *wait_ms until the next is. */
static int pusher_find(const struct pusher *pusher, struct pushes_record *out, int64_t *wait_ms,
		       struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	int found;

	if (meta_begin(pusher->options.store, META_READ, &meta, err) < 0)
		return -1;
	found = pushes_next(meta, out, err);
	*wait_ms = PUSHER_LOOK_MS;
	if (found != 1)
		return found;
	*wait_ms = out->retry_ms - clock_ask_ms(pusher->options.clock);
	return *wait_ms <= 0;
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

/* 1 one was tried, 0 none is due, -1. */
static int pusher_turn(struct pusher *pusher, int64_t *wait_ms, struct err *err)
{
	const struct pusher_options *options = &pusher->options;
	auto_pushes_record struct pushes_record record = {.error = NULL};
	struct err why = {0};
	int found = pusher_find(pusher, &record, wait_ms, err);
	int pushed;

	if (found != 1)
		return found;
	pushed = options->push(options->push_ctx, str_of(record.reference), &record.image,
			       &pusher->cancel, &why);
	if (pushed < 0 && cancel_is_raised(&pusher->cancel))
		return 0; /* it stays to be done */
	if (pushed < 0)
		log_warn("image not pushed bake=%s to=%s why=\"%s\"", record.bake_id,
			 record.reference, why.text);
	return pusher_settle(pusher, &record, pushed < 0 ? &why : NULL, err) < 0 ? -1 : 1;
}

static int64_t pusher_all(struct pusher *pusher)
{
	int64_t wait_ms = PUSHER_AGAIN_MS;
	struct err err;
	int result;

	do {
		result = pusher_turn(pusher, &wait_ms, &err);
	} while (result == 1 && !cancel_is_raised(&pusher->cancel));
	if (result < 0) {
		log_warn("pushes not read why=\"%s\"", err.text);
		wait_ms = PUSHER_AGAIN_MS;
	}
	return wait_ms < PUSHER_LOOK_MS ? wait_ms : PUSHER_LOOK_MS;
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

static void *pusher_run(void *ctx)
{
	struct pusher *pusher = ctx;
	int64_t wait_ms = 0;

	while (pusher_wait(pusher, wait_ms))
		wait_ms = pusher_all(pusher);
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
	if (cancel_init(&pusher->cancel, err) < 0 ||
	    thread_start(&pusher->thread, pusher_run, pusher, err) < 0) {
		cancel_done(&pusher->cancel);
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
	cancel_raise(&pusher->cancel);
	lock_take(&pusher->lock);
	pusher->ended = true;
	pthread_cond_signal(&pusher->changed);
	lock_drop(&pusher->lock);
	(void)pthread_join(pusher->thread, NULL);
	cancel_done(&pusher->cancel);
	free(pusher);
}
