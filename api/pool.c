/* SPDX-License-Identifier: Apache-2.0 */
#include "api/pool.h"

#include "layers/base/lock.h"
#include "layers/base/thread.h"

#include <time.h>

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
	bool over;
};

struct pool *pool_new(size_t threads, size_t waiting)
{
	struct pool *pool = calloc(1, sizeof(*pool));
	pthread_condattr_t attr;

	if (!pool)
		abort();
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

/* The next job; NULL when there was none for POOL_IDLE_MS. */
static struct pool_job *pool_take_locked(struct pool *pool) REQUIRES(pool->lock)
{
	struct pool_job *job;
	struct timespec until;
	int late = 0;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += POOL_IDLE_MS / 1000;
	pool->idle++;
	while (!pool->first && !pool->over && late == 0)
		late = pthread_cond_timedwait(&pool->work, &pool->lock.os, &until);
	pool->idle--;
	job = pool->first;
	if (!job)
		return NULL;
	pool->first = job->next;
	if (!pool->first)
		pool->last = &pool->first;
	pool->waiting--;
	return job;
}

static void *pool_run(void *ctx)
{
	struct pool *pool = ctx;
	struct pool_job *job;

	lock_take(&pool->lock);
	while ((job = pool_take_locked(pool))) {
		lock_drop(&pool->lock);
		job->run(job);
		lock_take(&pool->lock);
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

bool pool_submit(struct pool *pool, struct pool_job *job)
{
	bool taken;

	lock_take(&pool->lock);
	taken = !pool->over && pool->waiting < pool->waiting_max && pool_grow_locked(pool);
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
