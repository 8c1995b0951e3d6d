/* SPDX-License-Identifier: Apache-2.0 */
#include "api/pool.h"

#include "layers/base/lock.h"
#include "layers/base/thread.h"

#include <assert.h>
#include <time.h>

/* Of all, what the jobs of one share may have, and those of one origin. */
static size_t pool_half(size_t all)
{
	return (all + 1) / 2;
}

static size_t pool_most(size_t all)
{
	return all - all / 4;
}

struct pool {
	struct lock lock;
	pthread_cond_t work;  /* there is a job, or the end */
	pthread_cond_t ended; /* a thread has */
	size_t threads_max;
	size_t waiting_max;
	/* guarded by lock: */
	struct pool_job *first;
	struct pool_job **last;
	size_t waiting;
	size_t threads;
	size_t idle;
	struct pool_owner running[POOL_THREADS_MAX]; /* where share is 0 a place is free */
	bool over;
};

struct pool *pool_new(size_t threads, size_t waiting)
{
	struct pool *pool = calloc(1, sizeof(*pool));
	pthread_condattr_t attr;

	if (!pool)
		abort();
	assert(threads <= POOL_THREADS_MAX);
	pool->threads_max = threads;
	pool->waiting_max = waiting;
	pool->lock = (struct lock)LOCK_INIT;
	pool->last = &pool->first;
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&pool->work, &attr);
	(void)pthread_cond_init(&pool->ended, NULL);
	(void)pthread_condattr_destroy(&attr);
	return pool;
}

/* How many jobs of an owner's share, and of his origin, there are. */
struct pool_tally {
	size_t share;
	size_t origin;
};

static void pool_tally(struct pool_tally *tally, const struct pool_owner *owner,
		       const struct pool_owner *of)
{
	tally->share += of->share == owner->share;
	tally->origin += of->origin != 0 && of->origin == owner->origin;
}

static bool pool_may_run_locked(const struct pool *pool, const struct pool_owner *owner)
	REQUIRES(pool->lock)
{
	struct pool_tally tally = {0};

	if (owner->share == 0)
		return true;
	for (size_t i = 0; i < pool->threads_max; i++)
		pool_tally(&tally, owner, &pool->running[i]);
	return tally.share < pool_half(pool->threads_max) &&
	       tally.origin < pool_most(pool->threads_max);
}

/* Where the first job is linked that may run; or where the list ends. */
static struct pool_job **pool_find_locked(struct pool *pool) REQUIRES(pool->lock)
{
	struct pool_job **at = &pool->first;

	while (*at && !pool_may_run_locked(pool, &(*at)->owner))
		at = &(*at)->next;
	return at;
}

static struct pool_job *pool_unlink_locked(struct pool *pool, struct pool_job **at)
	REQUIRES(pool->lock)
{
	struct pool_job *job = *at;

	if (!job)
		return NULL;
	*at = job->next;
	if (pool->last == &job->next)
		pool->last = at;
	pool->waiting--;
	return job;
}

/* The next job; NULL when there was none for POOL_IDLE_MS. */
static struct pool_job *pool_take_locked(struct pool *pool) REQUIRES(pool->lock)
{
	struct timespec until;
	int late = 0;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += POOL_IDLE_MS / 1000;
	pool->idle++;
	while (!*pool_find_locked(pool) && !(pool->over && !pool->first) && late == 0)
		late = pthread_cond_timedwait(&pool->work, &pool->lock.os, &until);
	pool->idle--;
	return pool_unlink_locked(pool, pool_find_locked(pool));
}

/* A place among those that run, of which there is one a thread; NULL for nobody's job. */
static struct pool_owner *pool_mark_locked(struct pool *pool, const struct pool_owner *owner)
	REQUIRES(pool->lock)
{
	struct pool_owner *at = pool->running;

	if (owner->share == 0)
		return NULL;
	while (at->share != 0)
		at++;
	*at = *owner;
	return at;
}

static void *pool_run(void *ctx)
{
	struct pool *pool = ctx;
	struct pool_job *job;

	lock_take(&pool->lock);
	while ((job = pool_take_locked(pool))) {
		struct pool_owner *mark = pool_mark_locked(pool, &job->owner);

		lock_drop(&pool->lock);
		job->run(job);
		lock_take(&pool->lock);
		if (mark)
			*mark = (struct pool_owner){0};
	}
	pool->threads--;
	(void)pthread_cond_signal(&pool->ended);
	lock_drop(&pool->lock);
	return NULL;
}

/* One more thread where all are busy. False: there is none at all. */
static bool pool_grow_locked(struct pool *pool) REQUIRES(pool->lock)
{
	pthread_t thread;
	struct err ignored;

	if (pool->idle > pool->waiting || pool->threads == pool->threads_max)
		return true;
	if (thread_start(&thread, pool_run, pool, &ignored) < 0)
		return pool->threads > 0;
	(void)pthread_detach(thread);
	pool->threads++;
	return true;
}

/* Room to wait, of all, of its share and of its origin; a few are not counted. */
static bool pool_has_room_locked(const struct pool *pool, const struct pool_owner *owner)
	REQUIRES(pool->lock)
{
	struct pool_tally tally = {0};

	if (owner->share == 0 || pool->waiting < pool_half(pool->waiting_max))
		return pool->waiting < pool->waiting_max;
	for (const struct pool_job *job = pool->first; job; job = job->next)
		pool_tally(&tally, owner, &job->owner);
	return pool->waiting < pool->waiting_max && tally.share < pool_half(pool->waiting_max) &&
	       tally.origin < pool_most(pool->waiting_max);
}

bool pool_submit(struct pool *pool, struct pool_job *job)
{
	bool taken;

	lock_take(&pool->lock);
	taken = !pool->over && pool_has_room_locked(pool, &job->owner) && pool_grow_locked(pool);
	if (taken) {
		job->next = NULL;
		*pool->last = job;
		pool->last = &job->next;
		pool->waiting++;
		(void)pthread_cond_signal(&pool->work);
	}
	lock_drop(&pool->lock);
	return taken;
}

void pool_free(struct pool *pool)
{
	if (!pool)
		return;
	lock_take(&pool->lock);
	pool->over = true;
	(void)pthread_cond_broadcast(&pool->work);
	while (pool->threads > 0)
		(void)pthread_cond_wait(&pool->ended, &pool->lock.os);
	lock_drop(&pool->lock);
	(void)pthread_cond_destroy(&pool->work);
	(void)pthread_cond_destroy(&pool->ended);
	free(pool);
}
