/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/sweeper.h"

#define LOG_MODULE "bake"
#include "layers/base/lock.h"
#include "layers/base/log.h"
#include "layers/base/thread.h"
#include "layers/tree.h"

#include <time.h>

struct sweeper {
	struct store *store;
	struct cancel cancel;
	pthread_t thread;
	struct lock lock;
	pthread_cond_t changed;
	/* guarded by lock: */
	bool wanted;
	bool busy;
	bool ended;
};

/* Wait for something to do. False at the end. */
static bool sweeper_next(struct sweeper *sweeper)
{
	bool more;

	lock_take(&sweeper->lock);
	sweeper->busy = false;
	pthread_cond_broadcast(&sweeper->changed);
	while (!sweeper->wanted && !sweeper->ended)
		pthread_cond_wait(&sweeper->changed, &sweeper->lock.os);
	more = !sweeper->ended;
	sweeper->busy = more;
	sweeper->wanted = false;
	lock_drop(&sweeper->lock);
	return more;
}

static void *sweeper_main(void *ctx)
{
	struct sweeper *sweeper = ctx;

	struct err err;

	/* Trees of earlier bakes are synced beside this one, not one by one. */
	if (tree_settle(sweeper->store, &err) < 0)
		log_debug("trees not settled why=\"%s\"", err.text);
	while (sweeper_next(sweeper)) {
		if (store_sweep(sweeper->store, &sweeper->cancel, &err) < 0)
			log_debug("not all swept why=\"%s\"", err.text);
	}
	return NULL;
}

static void sweeper_free(struct sweeper *sweeper)
{
	cancel_done(&sweeper->cancel);
	(void)pthread_cond_destroy(&sweeper->changed);
	free(sweeper);
}

int sweeper_start(struct store *store, struct sweeper **out, struct err *err)
{
	struct sweeper *sweeper = calloc(1, sizeof(*sweeper));

	if (!sweeper)
		abort();
	*sweeper = (struct sweeper){
		.store = store,
		.lock = LOCK_INIT,
		.changed = PTHREAD_COND_INITIALIZER,
		.wanted = true,
	};
	if (cancel_init(&sweeper->cancel, err) < 0) {
		free(sweeper);
		return -1;
	}
	if (thread_start(&sweeper->thread, sweeper_main, sweeper, err) < 0) {
		sweeper_free(sweeper);
		return -1;
	}
	*out = sweeper;
	return 0;
}

void sweeper_wake(struct sweeper *sweeper)
{
	lock_take(&sweeper->lock);
	sweeper->wanted = true;
	pthread_cond_broadcast(&sweeper->changed);
	lock_drop(&sweeper->lock);
}

static void sweeper_wait_locked(struct sweeper *sweeper, int grace_ms) REQUIRES(sweeper->lock);
static void sweeper_wait_locked(struct sweeper *sweeper, int grace_ms)
{
	struct timespec end;

	(void)clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += grace_ms / 1000;
	end.tv_nsec += (long)(grace_ms % 1000) * 1000000;
	if (end.tv_nsec >= 1000000000) {
		end.tv_sec++;
		end.tv_nsec -= 1000000000;
	}
	while (sweeper->wanted || sweeper->busy) {
		if (pthread_cond_timedwait(&sweeper->changed, &sweeper->lock.os, &end) != 0)
			break;
	}
}

void sweeper_stop(struct sweeper *sweeper, int grace_ms)
{
	if (!sweeper)
		return;
	lock_take(&sweeper->lock);
	sweeper_wait_locked(sweeper, grace_ms);
	sweeper->ended = true;
	pthread_cond_broadcast(&sweeper->changed);
	lock_drop(&sweeper->lock);
	cancel_raise(&sweeper->cancel);
	(void)pthread_join(sweeper->thread, NULL);
	sweeper_free(sweeper);
}
