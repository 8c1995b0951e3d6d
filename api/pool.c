/* SPDX-License-Identifier: Apache-2.0 */
#include "api/pool.h"

#include "layers/base/lock.h"
#include "layers/base/thread.h"

#include <assert.h>
#include <time.h>

#define POOL_SHARE 2 /* of all, what the jobs of one share may have: a half */

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
	uint64_t running[POOL_THREADS_MAX]; /* whose jobs; 0: a place is free */
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

static bool pool_may_run_locked(const struct pool *pool, uint64_t share) REQUIRES(pool->lock)
{
	size_t running = 0;

	for (size_t i = 0; share != 0 && i < pool->threads_max; i++)
		running += pool->running[i] == share;
	return running < (pool->threads_max + 1) / POOL_SHARE;
}

/* Where the first job is linked that may run; or where the list ends. */
static struct pool_job **pool_find_locked(struct pool *pool) REQUIRES(pool->lock)
{
	struct pool_job **at = &pool->first;

	while (*at && !pool_may_run_locked(pool, (*at)->share))
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
static uint64_t *pool_mark_locked(struct pool *pool, uint64_t share) REQUIRES(pool->lock)
{
	uint64_t *at = pool->running;

	if (share == 0)
		return NULL;
	while (*at != 0)
		at++;
	*at = share;
	return at;
}

static void *pool_run(void *ctx)
{
	struct pool *pool = ctx;
	struct pool_job *job;

	lock_take(&pool->lock);
	while ((job = pool_take_locked(pool))) {
		uint64_t *mark = pool_mark_locked(pool, job->share);

		lock_drop(&pool->lock);
		job->run(job);
		lock_take(&pool->lock);
		if (mark)
			*mark = 0;
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

/* Room to wait, of all and of its share; a few are not counted. */
static bool pool_has_room_locked(const struct pool *pool, uint64_t share) REQUIRES(pool->lock)
{
	size_t own = 0;

	if (share == 0 || pool->waiting < pool->waiting_max / POOL_SHARE)
		return pool->waiting < pool->waiting_max;
	for (const struct pool_job *job = pool->first; job; job = job->next)
		own += job->share == share;
	return pool->waiting < pool->waiting_max && own < pool->waiting_max / POOL_SHARE;
}

bool pool_submit(struct pool *pool, struct pool_job *job)
{
	bool taken;

	lock_take(&pool->lock);
	taken = !pool->over && pool_has_room_locked(pool, job->share) && pool_grow_locked(pool);
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
