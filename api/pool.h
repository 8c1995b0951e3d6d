/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.h - threads for jobs that may block, as many as there are jobs.
 *
 * A thread that finds nothing to do for POOL_IDLE_MS ends, so a daemon at rest
 * has none. The jobs of one share never have more than half of the threads, nor of
 * the places where jobs wait, and all shares of one origin three quarters: who has
 * many jobs keeps nobody else from having one, nor does he by having many shares.
 */
#pragma once

#include "layers/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POOL_IDLE_MS 10000
#define POOL_THREADS_MAX ((size_t)64)

struct pool;

/* Whose a job is. */
struct pool_owner {
	uint64_t share;  /* 0: nobody's, and there is no limit */
	uint64_t origin; /* where it comes from; 0: from here */
};

/* Embedded in the job's own struct; borrowed until run() is called. */
struct pool_job {
	void (*run)(struct pool_job *job);
	struct pool_owner owner;
	struct pool_job *next;
};

/* At most POOL_THREADS_MAX. waiting: how many jobs there may be that no thread has taken yet. */
struct pool *pool_new(size_t threads, size_t waiting);

/* False: too much waits already, of all or of its share, or no thread could be started. */
bool pool_submit(struct pool *pool, struct pool_job *job);

/* Wait until all submitted jobs are done, and end the threads. */
void pool_free(struct pool *pool);
