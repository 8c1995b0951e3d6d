/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread.h - threads that share a process with a main thread.
 *
 * Signals are the main thread's business: a thread that was started here has
 * all of them blocked, so no handler runs on it and none of its waits is cut
 * short. Whoever starts a thread joins it.
 */
#pragma once

#include "layers/base/err.h"

#include <pthread.h>
#include <stddef.h>

int thread_start(pthread_t *out, void *(*run)(void *ctx), void *ctx, struct err *err) MUST_CHECK;

/* The processors that are online, at least 1 and at most max. */
size_t thread_cores(size_t max);
