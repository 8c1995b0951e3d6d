/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/loop_priv.h"

#include "layers/base/clock.h"

#include <limits.h>
#include <sys/eventfd.h>

static void loop_on_stop(void *ctx, uint32_t events)
{
	struct loop *loop = ctx;

	(void)events;
	loop->stopped = true;
}

int loop_init(struct loop *loop, struct err *err)
{
	auto_close int stopfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	auto_close int epollfd = epoll_create1(EPOLL_CLOEXEC);

	if (stopfd < 0 || epollfd < 0)
		return err_os(err, errno, "make an event loop");
	*loop = (struct loop){
		.epollfd = steal_fd(&epollfd),
		.stop = {.fd = steal_fd(&stopfd), .ready = loop_on_stop, .ctx = loop},
	};
	if (loop_watch(loop, &loop->stop, EPOLLIN, err) < 0) {
		loop_done(loop);
		return -1;
	}
	return 0;
}

void loop_done(struct loop *loop)
{
	auto_close_release(&loop->stop.fd);
	auto_close_release(&loop->epollfd);
}

void loop_stop(struct loop *loop)
{
	static const uint64_t one = 1;
	ssize_t n = write(loop->stop.fd, &one, sizeof(one));

	(void)n; /* a full counter is readable too */
}

int loop_watch(struct loop *loop, struct watch *watch, uint32_t events, struct err *err)
{
	struct epoll_event event = {.events = events, .data.ptr = watch};
	int op = watch->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	/*
	 * With nothing to wait for it is removed, since a hangup would be
	 * reported again and again.
	 */
	if (events == 0) {
		loop_unwatch(loop, watch);
		return 0;
	}
	if (events == watch->events)
		return 0;
	if (epoll_ctl(loop->epollfd, op, watch->fd, &event) < 0)
		return err_os(err, errno, "watch a descriptor");
	watch->events = events;
	return 0;
}

void loop_unwatch(struct loop *loop, struct watch *watch)
{
	if (watch->events)
		(void)epoll_ctl(loop->epollfd, EPOLL_CTL_DEL, watch->fd, NULL);
	watch->events = 0;
}

void loop_arm(struct loop *loop, struct timer *timer, int64_t delay_ms)
{
	loop_disarm(timer);
	timer->at = clock_monotonic_ms() + delay_ms;
	timer->next = loop->timers;
	timer->link = &loop->timers;
	if (timer->next)
		timer->next->link = &timer->next;
	loop->timers = timer;
}

void loop_disarm(struct timer *timer)
{
	if (!timer->link)
		return;
	*timer->link = timer->next;
	if (timer->next)
		timer->next->link = timer->link;
	timer->link = NULL;
}

/* The next timer; few are armed at a time, so they are not kept in order. */
static struct timer *loop_first_timer(const struct loop *loop)
{
	struct timer *first = loop->timers;

	for (struct timer *at = first; at; at = at->next) {
		if (at->at < first->at)
			first = at;
	}
	return first;
}

/* Run one timer that is due. Returns how long to wait, -1 for ever. */
static int loop_run_timer(struct loop *loop)
{
	struct timer *timer = loop_first_timer(loop);
	int64_t left;

	if (!timer)
		return -1;
	left = timer->at - clock_monotonic_ms();
	if (left > 0)
		return left < INT_MAX ? (int)left : INT_MAX;
	loop_disarm(timer);
	timer->due(timer->ctx);
	return 0;
}

void loop_run(struct loop *loop)
{
	while (!loop->stopped) {
		int wait = loop_run_timer(loop);
		struct epoll_event event;

		if (epoll_wait(loop->epollfd, &event, 1, wait) == 1) {
			struct watch *watch = event.data.ptr;

			watch->ready(watch->ctx, event.events);
		}
	}
}
