/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/ahead_priv.h"

#include "layers/base/lock.h"
#include "layers/base/thread.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <time.h>

#define AHEAD_SHARED ((size_t)96)     /* fewer names are not worth waking a thread for */
#define AHEAD_STRIDE ((size_t)16)     /* names taken at once, where each is quick */
#define AHEAD_SLOW_NS ((int64_t)5000) /* an entry that took longer was read */

struct ahead {
	ahead_fn *fn;
	void *ctx;
	pthread_t threads[AHEAD_THREADS_MAX];
	size_t thread_count;
	bool started;
	bool slow; /* the last names were */
	/* Of the call: */
	int dirfd;
	const char *const *names;
	size_t count;
	size_t stride;
	struct ahead_entry *out;
	atomic_size_t next;
	struct lock lock;
	pthread_cond_t changed;
	/* guarded by lock: */
	unsigned long call;
	bool open; /* there may be names left */
	bool ended;
	size_t busy; /* threads that look at some */
};

static void ahead_look_at(const struct ahead *ahead, size_t at)
{
	struct ahead_entry *entry = &ahead->out[at];
	const char *name = ahead->names[at];

	entry->known = false;
	entry->os = fstatat(ahead->dirfd, name, &entry->st, AT_SYMLINK_NOFOLLOW) < 0 ? errno : 0;
	if (entry->os == 0 && ahead->fn && S_ISREG(entry->st.st_mode))
		entry->known = ahead->fn(ahead->ctx, ahead->dirfd, name, &entry->st, &entry->what);
}

static void ahead_work(struct ahead *ahead)
{
	size_t from;

	while ((from = atomic_fetch_add(&ahead->next, ahead->stride)) < ahead->count) {
		size_t to = from + ahead->stride;

		for (size_t at = from; at < to && at < ahead->count; at++)
			ahead_look_at(ahead, at);
	}
}

/* Wait for a call that this thread has not seen. False at the end. */
static bool ahead_wait_locked(struct ahead *ahead, unsigned long *seen) REQUIRES(ahead->lock);
static bool ahead_wait_locked(struct ahead *ahead, unsigned long *seen)
{
	while (!ahead->ended && (!ahead->open || ahead->call == *seen))
		pthread_cond_wait(&ahead->changed, &ahead->lock.os);
	*seen = ahead->call;
	return !ahead->ended;
}

static void *ahead_main(void *ctx)
{
	struct ahead *ahead = ctx;
	unsigned long seen = 0;

	lock_take(&ahead->lock);
	while (ahead_wait_locked(ahead, &seen)) {
		ahead->busy++;
		lock_drop(&ahead->lock);
		ahead_work(ahead);
		lock_take(&ahead->lock);
		ahead->busy--;
		pthread_cond_broadcast(&ahead->changed);
	}
	lock_drop(&ahead->lock);
	return NULL;
}

/* Without threads it only takes longer. */
static void ahead_start(struct ahead *ahead)
{
	struct err ignored;
	size_t wanted;

	if (ahead->started)
		return;
	ahead->started = true;
	wanted = thread_cores(AHEAD_THREADS_MAX) - 1;
	while (ahead->thread_count < wanted &&
	       thread_start(&ahead->threads[ahead->thread_count], ahead_main, ahead, &ignored) == 0)
		ahead->thread_count++;
}

static void ahead_share(struct ahead *ahead)
{
	ahead_start(ahead);
	lock_take(&ahead->lock);
	ahead->call++;
	ahead->open = true;
	pthread_cond_broadcast(&ahead->changed);
	lock_drop(&ahead->lock);
}

static void ahead_gather(struct ahead *ahead)
{
	lock_take(&ahead->lock);
	ahead->open = false;
	while (ahead->busy > 0)
		pthread_cond_wait(&ahead->changed, &ahead->lock.os);
	lock_drop(&ahead->lock);
}

static int64_t ahead_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void ahead_look(struct ahead *ahead, int dirfd, const char *const *names, size_t count,
		struct ahead_entry *out)
{
	bool shared = count >= AHEAD_SHARED || (ahead->slow && count > 1);
	int64_t start = ahead_now();

	ahead->dirfd = dirfd;
	ahead->names = names;
	ahead->count = count;
	ahead->out = out;
	ahead->stride = ahead->slow ? 1 : AHEAD_STRIDE;
	atomic_store(&ahead->next, 0);
	if (shared)
		ahead_share(ahead);
	ahead_work(ahead);
	if (shared)
		ahead_gather(ahead);
	ahead->slow = ahead_now() - start > (int64_t)count * AHEAD_SLOW_NS;
}

struct ahead *ahead_new(ahead_fn *fn, void *ctx)
{
	struct ahead *ahead = calloc(1, sizeof(*ahead));

	if (!ahead)
		abort();
	ahead->fn = fn;
	ahead->ctx = ctx;
	ahead->lock = (struct lock)LOCK_INIT;
	ahead->changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	return ahead;
}

void ahead_free(struct ahead *ahead)
{
	if (!ahead)
		return;
	lock_take(&ahead->lock);
	ahead->ended = true;
	pthread_cond_broadcast(&ahead->changed);
	lock_drop(&ahead->lock);
	for (size_t i = 0; i < ahead->thread_count; i++)
		(void)pthread_join(ahead->threads[i], NULL);
	(void)pthread_cond_destroy(&ahead->changed);
	free(ahead);
}
