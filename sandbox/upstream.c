/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/upstream_priv.h"

#include "layers/base/lock.h"

#include <netdb.h>
#include <sys/eventfd.h>
#include <time.h>

#define UPSTREAM_CLOSE_MS 200 /* for threads that are about to end anyway */

struct upstream_queue {
	struct upstream_answer *first;
	struct upstream_answer **last;
};

struct upstream {
	int fd; /* an eventfd, counts answers */
	struct lock lock;
	pthread_cond_t changed;
	/* guarded by lock: */
	struct upstream_queue asked;
	struct upstream_queue answered;
	size_t pending; /* asked and not yet taken */
	size_t threads;
	size_t idle;
	size_t queued; /* asked and not yet begun */
	bool closing;
	bool orphaned; /* the last thread frees it all */
};

static void upstream_put(struct upstream_queue *queue, struct upstream_answer *answer)
{
	answer->next = NULL;
	*queue->last = answer;
	queue->last = &answer->next;
}

static struct upstream_answer *upstream_get(struct upstream_queue *queue)
{
	struct upstream_answer *answer = queue->first;

	if (!answer)
		return NULL;
	queue->first = answer->next;
	if (!queue->first)
		queue->last = &queue->first;
	return answer;
}

int upstream_open(struct upstream **out, struct err *err)
{
	struct upstream *upstream = calloc(1, sizeof(*upstream));
	pthread_condattr_t clock;

	if (!upstream)
		abort();
	upstream->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (upstream->fd < 0) {
		free(upstream);
		return err_os(err, errno, "create an event descriptor");
	}
	upstream->lock = (struct lock)LOCK_INIT;
	upstream->asked.last = &upstream->asked.first;
	upstream->answered.last = &upstream->answered.first;
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&upstream->changed, &clock);
	pthread_condattr_destroy(&clock);
	*out = upstream;
	return 0;
}

static void upstream_free(struct upstream *upstream)
{
	struct upstream_answer *answer;

	while ((answer = upstream_get(&upstream->asked)) ||
	       (answer = upstream_get(&upstream->answered)))
		free(answer);
	pthread_cond_destroy(&upstream->changed);
	auto_close_release(&upstream->fd);
	free(upstream);
}

int upstream_fd(const struct upstream *upstream)
{
	return upstream->fd;
}

static enum dns_rcode upstream_rcode(int code)
{
	switch (code) {
	case 0:
	case EAI_NODATA: /* it exists, and has no address */
		return DNS_NOERROR;
	case EAI_NONAME:
		return DNS_NXDOMAIN;
	default: /* no server answered, or none could be asked */
		return DNS_SERVFAIL;
	}
}

static void upstream_resolve(struct upstream_answer *answer)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	int code = getaddrinfo(answer->name, NULL, &hints, &found);

	answer->rcode = upstream_rcode(code);
	if (code != 0)
		return;
	for (struct addrinfo *at = found; at && answer->count < UPSTREAM_ADDRESSES_MAX;
	     at = at->ai_next) {
		if (address_from(at->ai_addr, &answer->addresses[answer->count]))
			answer->count++;
	}
	freeaddrinfo(found);
}

/* The next question; NULL when there will be none. */
static struct upstream_answer *upstream_wait_locked(struct upstream *upstream)
	REQUIRES(upstream->lock)
{
	struct upstream_answer *answer;

	for (;;) {
		if (upstream->closing)
			return NULL;
		answer = upstream_get(&upstream->asked);
		if (answer) {
			upstream->queued--;
			return answer;
		}
		upstream->idle++;
		pthread_cond_wait(&upstream->changed, &upstream->lock.os);
		upstream->idle--;
	}
}

static void *upstream_main(void *ctx)
{
	struct upstream *upstream = ctx;
	static const uint64_t one = 1;
	struct upstream_answer *answer;
	bool is_last_orphan;

	lock_take(&upstream->lock);
	while ((answer = upstream_wait_locked(upstream))) {
		ssize_t n;

		lock_drop(&upstream->lock);
		upstream_resolve(answer);
		lock_take(&upstream->lock);
		upstream_put(&upstream->answered, answer);
		n = write(upstream->fd, &one, sizeof(one));
		(void)n; /* a full counter is readable too */
	}
	upstream->threads--;
	is_last_orphan = upstream->orphaned && upstream->threads == 0;
	pthread_cond_broadcast(&upstream->changed);
	lock_drop(&upstream->lock);
	if (is_last_orphan)
		upstream_free(upstream);
	return NULL;
}

/* One more thread, where all are busy and another is allowed. */
static int upstream_start_thread_locked(struct upstream *upstream, struct err *err)
	REQUIRES(upstream->lock)
{
	pthread_attr_t attr;
	pthread_t thread;
	int os;

	if (upstream->idle > upstream->queued || upstream->threads >= UPSTREAM_THREADS_MAX)
		return 0;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	os = pthread_create(&thread, &attr, upstream_main, upstream);
	pthread_attr_destroy(&attr);
	if (os == 0)
		upstream->threads++;
	else if (upstream->threads == 0)
		return err_os(err, os, "start a thread");
	return 0;
}

int upstream_ask(struct upstream *upstream, const char *name, struct err *err)
{
	auto_free struct upstream_answer *answer = calloc(1, sizeof(*answer));
	int rc;

	if (!answer)
		abort();
	memcpy(answer->name, name, strlen(name) + 1);
	lock_take(&upstream->lock);
	if (upstream->pending >= UPSTREAM_PENDING_MAX)
		rc = err_set(err, ERR_BUSY, "more than %d lookups", UPSTREAM_PENDING_MAX);
	else
		rc = upstream_start_thread_locked(upstream, err);
	if (rc == 0) {
		upstream_put(&upstream->asked, steal_ptr(&answer));
		upstream->queued++;
		upstream->pending++;
		pthread_cond_broadcast(&upstream->changed);
	}
	lock_drop(&upstream->lock);
	return rc;
}

struct upstream_answer *upstream_take(struct upstream *upstream)
{
	struct upstream_answer *answer;
	uint64_t count;

	lock_take(&upstream->lock);
	answer = upstream_get(&upstream->answered);
	if (answer)
		upstream->pending--;
	else if (read(upstream->fd, &count, sizeof(count)) < 0)
		errno = 0; /* there was nothing to forget */
	lock_drop(&upstream->lock);
	return answer;
}

/* Wait for the threads. False when one is stuck: the last of them frees it all. */
static bool upstream_end_threads(struct upstream *upstream)
{
	struct timespec until;
	bool has_ended;
	int os = 0;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += UPSTREAM_CLOSE_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;

	lock_take(&upstream->lock);
	upstream->closing = true;
	pthread_cond_broadcast(&upstream->changed);
	while (upstream->threads > 0 && os == 0)
		os = pthread_cond_timedwait(&upstream->changed, &upstream->lock.os, &until);
	has_ended = upstream->threads == 0;
	upstream->orphaned = !has_ended;
	lock_drop(&upstream->lock);
	return has_ended;
}

void upstream_close(struct upstream *upstream)
{
	if (upstream && upstream_end_threads(upstream))
		upstream_free(upstream);
}
