/* SPDX-License-Identifier: Apache-2.0 */
#include "api/watch.h"

#include "layers/base/clock.h"
#include "layers/base/lock.h"
#include "layers/base/thread.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#define WATCH_BUCKETS 256
#define WATCH_EVENTS 64
#define WATCH_LINKS_MS 1000 /* between two looks at the deadlines of links */

struct bucket {
	struct waiter *first;
	uint64_t changed; /* the mark of its last change */
};

struct watch {
	struct watch_calls calls;
	pthread_t thread;
	int epollfd; /* connections of waiters, for their end */
	int pokefd;  /* an eventfd: deadlines have changed */
	atomic_ullong mark;
	struct lock lock;
	/* guarded by lock: */
	struct bucket buckets[WATCH_BUCKETS];
	struct link *links;
	size_t waiting; /* that no job works on */
	size_t linked;
	int64_t next_ms; /* when the thread looks again at the latest */
	bool no_waiting;
	bool stop;
};

static struct bucket *watch_bucket(struct watch *watch, uint64_t topic)
{
	return &watch->buckets[topic % WATCH_BUCKETS];
}

static void watch_poke(const struct watch *watch)
{
	static const uint64_t one = 1;
	ssize_t n = write(watch->pokefd, &one, sizeof(one));

	(void)n; /* a full counter is readable too */
}

uint64_t watch_mark(struct watch *watch)
{
	return atomic_load(&watch->mark);
}

static void watch_list_locked(struct watch *watch, struct waiter *waiter) REQUIRES(watch->lock)
{
	struct bucket *bucket = watch_bucket(watch, waiter->wait.topic);
	struct epoll_event gone = {.events = EPOLLRDHUP, .data.fd = waiter->fd};

	waiter->next = bucket->first;
	waiter->at = &bucket->first;
	if (waiter->next)
		waiter->next->at = &waiter->next;
	bucket->first = waiter;
	waiter->listed = true;
	/* If a connection cannot be watched, its end is noticed at the deadline. */
	if (!waiter->job) {
		watch->waiting++;
		(void)epoll_ctl(watch->epollfd, EPOLL_CTL_ADD, waiter->fd, &gone);
	}
	if (waiter->wait.until_ms < watch->next_ms)
		watch_poke(watch);
}

static void watch_resume_locked(struct watch *watch, struct waiter *waiter, enum watch_why why)
	REQUIRES(watch->lock)
{
	*waiter->at = waiter->next;
	if (waiter->next)
		waiter->next->at = waiter->at;
	waiter->listed = false;
	waiter->why = why;
	if (!waiter->job) {
		watch->waiting--;
		(void)epoll_ctl(watch->epollfd, EPOLL_CTL_DEL, waiter->fd, NULL);
	}
	watch->calls.resume(waiter);
}

bool watch_park(struct watch *watch, struct waiter *waiter, uint64_t mark)
{
	bool parked = false;

	lock_take(&watch->lock);
	if (watch->no_waiting && !waiter->job) {
		waiter->why = WATCH_STOP;
	} else if (waiter->woken ||
		   (!waiter->job && watch_bucket(watch, waiter->wait.topic)->changed > mark)) {
		waiter->why = WATCH_CHANGED;
	} else {
		watch->calls.suspend(waiter);
		watch_list_locked(watch, waiter);
		parked = true;
	}
	waiter->woken = false;
	lock_drop(&watch->lock);
	return parked;
}

void watch_wake(struct watch *watch, uint64_t topic)
{
	struct bucket *bucket = watch_bucket(watch, topic);
	struct waiter *next;

	lock_take(&watch->lock);
	bucket->changed = atomic_fetch_add(&watch->mark, 1) + 1;
	for (struct waiter *waiter = bucket->first; waiter; waiter = next) {
		next = waiter->next;
		if (waiter->wait.topic == topic && !waiter->job)
			watch_resume_locked(watch, waiter, WATCH_CHANGED);
	}
	lock_drop(&watch->lock);
}

void watch_wake_one(struct watch *watch, struct waiter *waiter)
{
	lock_take(&watch->lock);
	if (waiter->listed)
		watch_resume_locked(watch, waiter, WATCH_CHANGED);
	else
		waiter->woken = true;
	lock_drop(&watch->lock);
}

/* Call fn for each waiter; it may resume it. */
typedef void watch_each_fn(struct watch *watch, struct waiter *waiter, int64_t number);

static void watch_each_locked(struct watch *watch, watch_each_fn *fn, int64_t number)
	REQUIRES(watch->lock)
{
	struct waiter *next;

	for (size_t i = 0; i < WATCH_BUCKETS; i++) {
		for (struct waiter *waiter = watch->buckets[i].first; waiter; waiter = next) {
			next = waiter->next;
			fn(watch, waiter, number);
		}
	}
}

static LOCK_ATTR(no_thread_safety_analysis) void watch_end_one(struct watch *watch,
							       struct waiter *waiter,
							       int64_t number)
{
	(void)number;
	if (!waiter->job)
		watch_resume_locked(watch, waiter, WATCH_STOP);
}

void watch_end_waiting(struct watch *watch)
{
	lock_take(&watch->lock);
	watch->no_waiting = true;
	watch_each_locked(watch, watch_end_one, 0);
	lock_drop(&watch->lock);
}

static LOCK_ATTR(no_thread_safety_analysis) void watch_see_due(struct watch *watch,
							       struct waiter *waiter,
							       int64_t now_ms)
{
	if (waiter->wait.until_ms <= now_ms)
		watch_resume_locked(watch, waiter, WATCH_DUE);
	else if (waiter->wait.until_ms < watch->next_ms)
		watch->next_ms = waiter->wait.until_ms;
}

/* Check the descriptor again, which may belong to another connection by now. */
static LOCK_ATTR(no_thread_safety_analysis) void watch_see_gone(struct watch *watch,
								struct waiter *waiter, int64_t fd)
{
	struct pollfd end = {.fd = waiter->fd, .events = POLLRDHUP};

	if (waiter->fd == fd && !waiter->job && poll(&end, 1, 0) == 1)
		watch_resume_locked(watch, waiter, WATCH_GONE);
}

/*
 * After a short read libmicrohttpd expects nothing more, and may miss an end of
 * stream that came with the bytes. This shutdown changes nothing, but wakes it.
 */
static void watch_tell_end(const struct link *link)
{
	struct pollfd end = {.fd = link->fd, .events = POLLRDHUP};

	if (poll(&end, 1, 0) == 1)
		(void)shutdown(link->fd, SHUT_RD);
}

static void watch_see_links_locked(struct watch *watch, int64_t now_ms) REQUIRES(watch->lock)
{
	for (struct link *link = watch->links; link; link = link->next) {
		int64_t until_ms = atomic_load_explicit(&link->until_ms, memory_order_relaxed);

		if (until_ms <= now_ms)
			(void)shutdown(link->fd, SHUT_RDWR); /* libmicrohttpd finds it closed */
		else if (until_ms < WATCH_SENDING)
			watch_tell_end(link);
	}
	if (watch->links && now_ms + WATCH_LINKS_MS < watch->next_ms)
		watch->next_ms = now_ms + WATCH_LINKS_MS;
}

void watch_cut_slow(struct watch *watch)
{
	lock_take(&watch->lock);
	for (struct link *link = watch->links; link; link = link->next) {
		if (atomic_load_explicit(&link->until_ms, memory_order_relaxed) != WATCH_NEVER)
			(void)shutdown(link->fd, SHUT_RDWR);
	}
	lock_drop(&watch->lock);
}

static void watch_hear(struct watch *watch, const struct epoll_event *events, int count)
{
	uint64_t pokes;

	lock_take(&watch->lock);
	for (int i = 0; i < count; i++) {
		if (events[i].data.fd == watch->pokefd)
			(void)!read(watch->pokefd, &pokes, sizeof(pokes));
		else
			watch_each_locked(watch, watch_see_gone, events[i].data.fd);
	}
	lock_drop(&watch->lock);
}

/* Look at all deadlines. How long to sleep then, -1 for ever; -2 the watch is over. */
static int watch_look(struct watch *watch)
{
	int64_t now_ms = clock_monotonic_ms();
	int sleep_ms = -1;

	lock_take(&watch->lock);
	watch->next_ms = WATCH_NEVER;
	watch_each_locked(watch, watch_see_due, now_ms);
	watch_see_links_locked(watch, now_ms);
	if (watch->stop)
		sleep_ms = -2;
	else if (watch->next_ms != WATCH_NEVER)
		sleep_ms = watch->next_ms - now_ms > INT32_MAX ? INT32_MAX
							       : (int)(watch->next_ms - now_ms);
	lock_drop(&watch->lock);
	return sleep_ms;
}

static void *watch_run(void *ctx)
{
	struct watch *watch = ctx;
	struct epoll_event events[WATCH_EVENTS];
	int sleep_ms;

	while ((sleep_ms = watch_look(watch)) != -2) {
		int count = epoll_wait(watch->epollfd, events, WATCH_EVENTS, sleep_ms);

		if (count > 0)
			watch_hear(watch, events, count);
	}
	return NULL;
}

static void watch_free(struct watch *watch)
{
	if (!watch)
		return;
	auto_close_release(&watch->epollfd);
	auto_close_release(&watch->pokefd);
	free(watch);
}
DEFINE_AUTO(watch, struct watch *, watch_free);

int watch_start(const struct watch_calls *calls, struct watch **out, struct err *err)
{
	AUTO(watch) struct watch *watch = calloc(1, sizeof(*watch));
	struct epoll_event poke = {.events = EPOLLIN};

	if (!watch)
		abort();
	*watch = (struct watch){.calls = *calls, .lock = LOCK_INIT, .next_ms = WATCH_NEVER};
	watch->epollfd = epoll_create1(EPOLL_CLOEXEC);
	watch->pokefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	poke.data.fd = watch->pokefd;
	if (watch->epollfd < 0 || watch->pokefd < 0 ||
	    epoll_ctl(watch->epollfd, EPOLL_CTL_ADD, watch->pokefd, &poke) < 0)
		return err_os(err, errno, "watch connections");
	if (thread_start(&watch->thread, watch_run, watch, err) < 0)
		return -1;
	*out = steal_ptr(&watch);
	return 0;
}

void watch_stop(struct watch *watch)
{
	if (!watch)
		return;
	lock_take(&watch->lock);
	watch->stop = true;
	lock_drop(&watch->lock);
	watch_poke(watch);
	(void)pthread_join(watch->thread, NULL);
	watch_free(watch);
}

void watch_add_link(struct watch *watch, struct link *link)
{
	lock_take(&watch->lock);
	link->next = watch->links;
	link->at = &watch->links;
	if (link->next)
		link->next->at = &link->next;
	watch->links = link;
	watch->linked++;
	if (watch->next_ms == WATCH_NEVER)
		watch_poke(watch);
	lock_drop(&watch->lock);
}

void watch_drop_link(struct watch *watch, struct link *link)
{
	lock_take(&watch->lock);
	*link->at = link->next;
	if (link->next)
		link->next->at = link->at;
	watch->linked--;
	lock_drop(&watch->lock);
}

size_t watch_waiting(struct watch *watch)
{
	size_t waiting;

	lock_take(&watch->lock);
	waiting = watch->waiting;
	lock_drop(&watch->lock);
	return waiting;
}

size_t watch_links(struct watch *watch)
{
	size_t linked;

	lock_take(&watch->lock);
	linked = watch->linked;
	lock_drop(&watch->lock);
	return linked;
}
