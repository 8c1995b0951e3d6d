/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/lookup_priv.h"

#include "layers/base/lock.h"

#include <netdb.h>
#include <sys/eventfd.h>
#include <time.h>

#define LOOKUP_CLOSE_MS 200 /* for threads that are about to end anyway */

struct lookup_queue {
	struct lookup_answer *first;
	struct lookup_answer **last;
};

struct lookup {
	int fd; /* an eventfd, counts answers */
	struct lock lock;
	pthread_cond_t changed;
	/* guarded by lock: */
	struct lookup_queue asked;
	struct lookup_queue answered;
	size_t pending; /* asked and not yet taken */
	size_t threads;
	size_t idle;
	size_t queued; /* asked and not yet begun */
	bool closing;
	bool orphaned; /* the last thread frees it all */
};

static void lookup_put(struct lookup_queue *queue, struct lookup_answer *answer)
{
	answer->next = NULL;
	*queue->last = answer;
	queue->last = &answer->next;
}

static struct lookup_answer *lookup_get(struct lookup_queue *queue)
{
	struct lookup_answer *answer = queue->first;

	if (!answer)
		return NULL;
	queue->first = answer->next;
	if (!queue->first)
		queue->last = &queue->first;
	return answer;
}

int lookup_open(struct lookup **out, struct err *err)
{
	struct lookup *lookup = calloc(1, sizeof(*lookup));
	pthread_condattr_t clock;

	if (!lookup)
		abort();
	lookup->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (lookup->fd < 0) {
		free(lookup);
		return err_os(err, errno, "create an event descriptor");
	}
	lookup->lock = (struct lock)LOCK_INIT;
	lookup->asked.last = &lookup->asked.first;
	lookup->answered.last = &lookup->answered.first;
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&lookup->changed, &clock);
	pthread_condattr_destroy(&clock);
	*out = lookup;
	return 0;
}

static void lookup_free(struct lookup *lookup)
{
	struct lookup_answer *answer;

	while ((answer = lookup_get(&lookup->asked)) || (answer = lookup_get(&lookup->answered)))
		free(answer);
	pthread_cond_destroy(&lookup->changed);
	auto_close_release(&lookup->fd);
	free(lookup);
}

int lookup_fd(const struct lookup *lookup)
{
	return lookup->fd;
}

static enum dns_rcode lookup_rcode(int code)
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

static void lookup_resolve(struct lookup_answer *answer)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	int code = getaddrinfo(answer->name, NULL, &hints, &found);

	answer->rcode = lookup_rcode(code);
	if (code != 0)
		return;
	for (struct addrinfo *at = found; at && answer->count < LOOKUP_ADDRESSES_MAX;
	     at = at->ai_next) {
		if (address_from(at->ai_addr, &answer->addresses[answer->count]))
			answer->count++;
	}
	freeaddrinfo(found);
}

/* The next question; NULL when there will be none. */
static struct lookup_answer *lookup_wait_locked(struct lookup *lookup) REQUIRES(lookup->lock)
{
	struct lookup_answer *answer;

	for (;;) {
		if (lookup->closing)
			return NULL;
		answer = lookup_get(&lookup->asked);
		if (answer) {
			lookup->queued--;
			return answer;
		}
		lookup->idle++;
		pthread_cond_wait(&lookup->changed, &lookup->lock.os);
		lookup->idle--;
	}
}

static void *lookup_main(void *ctx)
{
	struct lookup *lookup = ctx;
	static const uint64_t one = 1;
	struct lookup_answer *answer;
	bool is_last_orphan;

	lock_take(&lookup->lock);
	while ((answer = lookup_wait_locked(lookup))) {
		ssize_t n;

		lock_drop(&lookup->lock);
		lookup_resolve(answer);
		lock_take(&lookup->lock);
		lookup_put(&lookup->answered, answer);
		n = write(lookup->fd, &one, sizeof(one));
		(void)n; /* a full counter is readable too */
	}
	lookup->threads--;
	is_last_orphan = lookup->orphaned && lookup->threads == 0;
	pthread_cond_broadcast(&lookup->changed);
	lock_drop(&lookup->lock);
	if (is_last_orphan)
		lookup_free(lookup);
	return NULL;
}

/* One more thread, where all are busy and another is allowed. */
static int lookup_start_thread_locked(struct lookup *lookup, struct err *err) REQUIRES(lookup->lock)
{
	pthread_attr_t attr;
	pthread_t thread;
	int os;

	if (lookup->idle > lookup->queued || lookup->threads >= LOOKUP_THREADS_MAX)
		return 0;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	os = pthread_create(&thread, &attr, lookup_main, lookup);
	pthread_attr_destroy(&attr);
	if (os == 0)
		lookup->threads++;
	else if (lookup->threads == 0)
		return err_os(err, os, "start a thread");
	return 0;
}

int lookup_ask(struct lookup *lookup, const char *name, struct err *err)
{
	auto_free struct lookup_answer *answer = calloc(1, sizeof(*answer));
	int rc;

	if (!answer)
		abort();
	memcpy(answer->name, name, strlen(name) + 1);
	lock_take(&lookup->lock);
	if (lookup->pending >= LOOKUP_PENDING_MAX)
		rc = err_set(err, ERR_BUSY, "more than %d lookups", LOOKUP_PENDING_MAX);
	else
		rc = lookup_start_thread_locked(lookup, err);
	if (rc == 0) {
		lookup_put(&lookup->asked, steal_ptr(&answer));
		lookup->queued++;
		lookup->pending++;
		pthread_cond_broadcast(&lookup->changed);
	}
	lock_drop(&lookup->lock);
	return rc;
}

struct lookup_answer *lookup_take(struct lookup *lookup)
{
	struct lookup_answer *answer;
	uint64_t count;

	lock_take(&lookup->lock);
	answer = lookup_get(&lookup->answered);
	if (answer)
		lookup->pending--;
	else if (read(lookup->fd, &count, sizeof(count)) < 0)
		errno = 0; /* there was nothing to forget */
	lock_drop(&lookup->lock);
	return answer;
}

/* Wait for the threads. False when one is stuck: the last of them frees it all. */
static bool lookup_end_threads(struct lookup *lookup)
{
	struct timespec until;
	bool has_ended;
	int os = 0;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += LOOKUP_CLOSE_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;

	lock_take(&lookup->lock);
	lookup->closing = true;
	pthread_cond_broadcast(&lookup->changed);
	while (lookup->threads > 0 && os == 0)
		os = pthread_cond_timedwait(&lookup->changed, &lookup->lock.os, &until);
	has_ended = lookup->threads == 0;
	lookup->orphaned = !has_ended;
	lock_drop(&lookup->lock);
	return has_ended;
}

void lookup_close(struct lookup *lookup)
{
	if (lookup && lookup_end_threads(lookup))
		lookup_free(lookup);
}
