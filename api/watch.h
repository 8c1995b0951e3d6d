/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.h - waiting requests, and the deadlines of connections.
 *
 * A waiter is a request that was put aside until its topic changes, its
 * deadline passes or its client goes; a link is a connection that must show
 * something by its deadline, or is shut. One thread looks after all of them.
 *
 * No change is missed: a caller takes watch_mark() before he looks at a state,
 * and watch_park() refuses if the topic has changed since.
 *
 * Ownership: waiters and links are embedded in what waits; a waiter is listed
 * from watch_park() until resume is called for it, once, by some thread.
 *
 * Threads: all calls may race. suspend and resume are called under the lock of
 * the watch, and must not call it.
 */
#pragma once

#include "layers/base/http.h"

#include <stdatomic.h>

struct watch;

enum watch_why {
	WATCH_CHANGED,
	WATCH_DUE,  /* its deadline has passed */
	WATCH_GONE, /* its client closed the connection */
	WATCH_STOP, /* the server stops */
};

struct waiter {
	int fd; /* of its connection */
	struct http_wait wait;
	enum watch_why why; /* why it was resumed */
	bool job;           /* a job works on it: only watch_wake_one() resumes it */
	bool listed;
	bool woken; /* by watch_wake_one(), before it was parked */
	struct waiter *next;
	struct waiter **at;
};

struct link {
	int fd;
	_Atomic int64_t until_ms; /* on the monotonic clock, or one of those below */
	struct link *next;
	struct link **at;
};

#define WATCH_NEVER INT64_MAX         /* its answer is made */
#define WATCH_SENDING (INT64_MAX - 1) /* its answer is sent */

struct watch_calls {
	void (*suspend)(struct waiter *waiter);
	void (*resume)(struct waiter *waiter);
};

int watch_start(const struct watch_calls *calls, struct watch **out, struct err *err) MUST_CHECK;

/* End all waiting, now and later; links are still looked after. */
void watch_end_waiting(struct watch *watch);

/* Shut the connections whose clients have something to do, be it but to read. */
void watch_cut_slow(struct watch *watch);
void watch_stop(struct watch *watch);

/* The present moment, for watch_park(). */
uint64_t watch_mark(struct watch *watch);

/*
 * Suspend the waiter until its topic changes or its deadline passes. False, and
 * it is not suspended: that has happened since the mark, or the server stops;
 * waiter->why says which.
 */
bool watch_park(struct watch *watch, struct waiter *waiter, uint64_t mark);

/* Something happened to a topic: resume all that wait for it. */
void watch_wake(struct watch *watch, uint64_t topic);

/* Resume this one, or let its next watch_park() refuse. */
void watch_wake_one(struct watch *watch, struct waiter *waiter);

void watch_add_link(struct watch *watch, struct link *link);
void watch_drop_link(struct watch *watch, struct link *link);

/* For metrics. */
size_t watch_waiting(struct watch *watch);
size_t watch_links(struct watch *watch);
