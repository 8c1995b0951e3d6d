/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop_priv.h - descriptors and deadlines that one thread waits for.
 *
 * One event is taken from the kernel at a time, so a handler may free any
 * watch and any timer, its own included. A watch and a timer belong to
 * whoever embeds them, and must be unwatched and disarmed before they go.
 *
 * Threads: loop_stop() may be called from any; all else by the one that runs.
 */
#pragma once

#include "layers/base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

typedef void watch_fn(void *ctx, uint32_t events);
typedef void timer_fn(void *ctx);

struct watch {
	int fd;
	uint32_t events; /* EPOLL*, what is waited for now; 0 for nothing at all */
	watch_fn *ready;
	void *ctx;
};

struct timer {
	int64_t at; /* monotonic ms */
	timer_fn *due;
	void *ctx;
	struct timer *next;
	struct timer **link; /* NULL when not armed */
};

struct loop {
	int epollfd;
	struct watch stop;
	bool stopped;
	struct timer *timers;
};

int loop_init(struct loop *loop, struct err *err) MUST_CHECK;
void loop_done(struct loop *loop);

/* Until loop_stop(). */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* Wait for these events, level-triggered, and for no others. */
int loop_watch(struct loop *loop, struct watch *watch, uint32_t events, struct err *err) MUST_CHECK;
void loop_unwatch(struct loop *loop, struct watch *watch);

void loop_arm(struct loop *loop, struct timer *timer, int64_t delay_ms);
void loop_disarm(struct timer *timer);
