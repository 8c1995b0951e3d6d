/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.h - threads for what may take its time, as many as there is work for.
 *
 * A thread that finds nothing to do for POOL_IDLE_MS ends, so a daemon at rest
 * has none.
 */
#pragma once

#include "layers/base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define POOL_THREADS_MAX ((size_t)64)
#define POOL_WAITING_MAX ((size_t)1024) /* jobs that no thread has taken yet */
#define POOL_IDLE_MS 10000

struct pool;

/* Embedded in what is to be done; borrowed until run() was called for it. */
struct pool_job {
	void (*run)(struct pool_job *job);
	struct pool_job *next;
};

struct pool *pool_new(void);

/* False: too much waits already, or no thread could be started. */
bool pool_submit(struct pool *pool, struct pool_job *job);

/* Wait until all was done that was submitted, and end all threads. */
void pool_free(struct pool *pool);
