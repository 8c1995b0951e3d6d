/* SPDX-License-Identifier: Apache-2.0 */
/* mirror.c - the mirror, and its threads, which take tasks from two queues (mirror_task.c). */
#include "registry/mirror_priv.h"

#include "layers/base/thread.h"

#include <stdio.h>
#include <time.h>

#define MIRROR_IDLE_MS 60000 /* until a thread without work lets its connections go */

#define LOG_MODULE "registry"
#include "layers/base/log.h"

static mirror_run_fn *const mirror_runs[MIRROR_KINDS] = {
	[MIRROR_TAG] = mirror_fetch_tag,    [MIRROR_MANIFEST] = mirror_fetch_manifest,
	[MIRROR_CHECK] = mirror_check_blob, [MIRROR_FILL] = mirror_fill_blob,
	[MIRROR_TAGS] = mirror_fetch_tags,  [MIRROR_REFERRERS] = mirror_fetch_referrers,
};

/* Threads */

static int mirror_hand_prepare(struct mirror_hand *hand, struct err *err)
{
	struct mirror_task *task = hand->task;

	/* Others found meanwhile that the upstream is to be left alone. */
	if (!task->probe && mirror_upstream_admit(task->place.upstream, &task->probe, err) < 0)
		return -1;
	if (mirror_remote_take(hand->mirror, &task->place, &hand->remote, err) < 0)
		return -1;
	if (!hand->http && remote_connect(mirror_remote_get(hand->remote), &hand->http, err) < 0)
		return -1;
	http_trust(hand->http, task->place.upstream->ca_file);
	return 0;
}

/* 1 some was made, 0 or -1: nothing of what comes is held meanwhile. */
static int mirror_make_room(const struct mirror *mirror)
{
	struct vacancy *vacancy = mirror->options.vacancy;
	struct err why;
	int made = vacancy ? vacancy_make(vacancy, 0, &why) : 0;

	if (made < 0)
		log_warn("no room made why=\"%s\"", why.text);
	return made;
}

/* What found no room is tried once more where some was made; or else whoever asks next finds it. */
static int mirror_hand_try(struct mirror_hand *hand, struct mirror_task *task, struct err *err)
{
	mirror_run_fn *run = mirror_runs[task->kind];
	int made;

	if (run(hand, task, err) == 0)
		return 0;
	if (err->kind != ERR_FULL)
		return -1;
	made = mirror_make_room(hand->mirror);
	return made == 1 && atomic_load(&task->arrived) == 0 ? run(hand, task, err) : -1;
}

static void mirror_hand_run(struct mirror_hand *hand, struct mirror_task *task)
{
	bool refused;

	hand->task = task;
	hand->remote = NULL;
	hand->silence.kind = ERR_NONE;
	task->result = mirror_hand_prepare(hand, &task->err);
	if (task->result == 0)
		task->result = mirror_hand_try(hand, task, &task->err);
	if (task->result < 0 &&
	    hand->silence.kind != ERR_NONE) /* once, however often it was tried */
		mirror_upstream_heard(task->place.upstream, NULL, &hand->silence);
	refused = task->result < 0 &&
		  (task->err.kind == ERR_UNAUTHORIZED || task->err.kind == ERR_DENIED);
	if (hand->remote)
		mirror_remote_release(hand->mirror, hand->remote, refused);
	if (task->result == 0)
		return;
	log_debug("upstream gave nothing repository=%s name=%s why=\"%s\"", task->place.key,
		  task->name, task->err.text);
	/* Its answers were well, but not what they were for: that is told of it, too. */
	if (task->err.kind == ERR_CORRUPT) {
		atomic_fetch_add(&task->place.upstream->counts.errors, 1);
		log_warn("upstream sent what is wrong repository=%s name=%s", task->place.key,
			 task->name);
	}
}

/* Nothing is to be done. Who is not needed for a while keeps no connection open. */
static void mirror_rest_locked(struct mirror *mirror, struct mirror_hand *hand)
	REQUIRES(mirror->lock);
static void mirror_rest_locked(struct mirror *mirror, struct mirror_hand *hand)
{
	int64_t idle_ms = mirror->options.idle_ms > 0 ? mirror->options.idle_ms : MIRROR_IDLE_MS;
	struct timespec until;
	int late = 0;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += idle_ms / 1000;
	until.tv_nsec += idle_ms % 1000 * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	mirror->idle++;
	if (hand->http)
		late = pthread_cond_timedwait(&mirror->work, &mirror->lock.os, &until);
	else
		(void)pthread_cond_wait(&mirror->work, &mirror->lock.os);
	mirror->idle--;
	if (late == 0)
		return;
	lock_drop(&mirror->lock);
	http_close(hand->http);
	hand->http = NULL;
	lock_take(&mirror->lock);
}

static void *mirror_main(void *ctx)
{
	struct mirror *mirror = ctx;
	struct mirror_hand hand = {.mirror = mirror};

	lock_take(&mirror->lock);
	while (!cancel_is_raised(&mirror->cancel)) {
		struct mirror_task *task = mirror_task_dequeue_locked(mirror);

		if (!task) {
			mirror_rest_locked(mirror, &hand);
			continue;
		}
		lock_drop(&mirror->lock);
		mirror_hand_run(&hand, task);
		lock_take(&mirror->lock);
		mirror_task_finish_locked(mirror, task);
		lock_drop(&mirror->lock);
		mirror_task_tell(task);
		mirror_task_release(task);
		lock_take(&mirror->lock);
	}
	lock_drop(&mirror->lock);
	http_close(hand.http);
	return NULL;
}

/* One thread more, unless enough are idle for what waits. */
static int mirror_grow_locked(struct mirror *mirror, struct err *err) REQUIRES(mirror->lock);
static int mirror_grow_locked(struct mirror *mirror, struct err *err)
{
	if (mirror->idle > mirror->waiting || mirror->threads == MIRROR_THREADS_MAX)
		return 0;
	if (thread_start(&mirror->thread[mirror->threads], mirror_main, mirror, err) < 0)
		return mirror->threads > 0 ? 0 : -1;
	mirror->threads++;
	return 0;
}

static int mirror_start_locked(struct mirror *mirror, const struct mirror_wish *wish,
			       struct mirror_task **out, struct err *err) REQUIRES(mirror->lock);
static int mirror_start_locked(struct mirror *mirror, const struct mirror_wish *wish,
			       struct mirror_task **out, struct err *err)
{
	struct mirror_task *task = mirror_task_join_locked(mirror, wish);
	bool probe = false;

	if (task) {
		*out = task;
		return 0;
	}
	if (mirror->waiting == MIRROR_WAITING_MAX ||
	    (mirror->upstream_count > 1 && wish->place->upstream->waiting >= MIRROR_WAITING_SHARE))
		return err_set(err, ERR_UNAVAILABLE, "too much is waiting for upstreams");
	if (mirror_upstream_admit(wish->place->upstream, &probe, err) < 0 ||
	    mirror_grow_locked(mirror, err) < 0)
		return -1;
	task = mirror_task_new(mirror, wish);
	task->probe = probe;
	mirror_task_enqueue_locked(mirror, task);
	*out = task;
	return 0;
}

int mirror_start(struct mirror *mirror, const struct mirror_wish *wish, struct mirror_task **out,
		 struct err *err)
{
	int result;

	lock_take(&mirror->lock);
	result = mirror_start_locked(mirror, wish, out, err);
	lock_drop(&mirror->lock);
	return result;
}

/* The mirror */

static void mirror_free(struct mirror *mirror)
{
	if (!mirror)
		return;
	mirror_remotes_free(mirror);
	cancel_done(&mirror->cancel);
	(void)pthread_cond_destroy(&mirror->work);
	(void)pthread_cond_destroy(&mirror->done);
	for (size_t i = 0; i < mirror->upstream_count; i++)
		mirror_upstream_done(&mirror->upstreams[i]);
	free(mirror->upstreams);
	free(mirror);
}
DEFINE_AUTO(mirror_part, struct mirror *, mirror_free);

static int mirror_add(struct mirror *mirror, const struct mirror_upstream_spec *spec,
		      struct err *err)
{
	struct mirror_upstream *upstream = &mirror->upstreams[mirror->upstream_count];

	if (mirror_upstream_init(upstream, spec, err) < 0)
		return err_ctx(err, "upstream " STR_FMT, STR_ARG(spec->host));
	mirror->upstream_count++;
	for (size_t i = 0; i + 1 < mirror->upstream_count; i++) {
		if (strcmp(mirror->upstreams[i].host, upstream->host) == 0)
			return err_set(err, ERR_INVALID, "upstream " STR_FMT " is the same as %s",
				       STR_ARG(spec->host), upstream->host);
	}
	if (mirror->options.back_off_ms > 0)
		upstream->back_off_ms = mirror->options.back_off_ms;
	return 0;
}

static int mirror_set_default(struct mirror *mirror, struct str host, struct err *err)
{
	char name[URL_HOST_MAX];

	if (host.len == 0)
		return 0;
	if (mirror_host_name(host, name, err) < 0)
		return -1;
	for (size_t i = 0; i < mirror->upstream_count; i++) {
		if (strcmp(mirror->upstreams[i].host, name) == 0)
			mirror->fallback = &mirror->upstreams[i];
	}
	if (!mirror->fallback)
		return err_set(err, ERR_INVALID, "the default upstream, %s, is none of them", name);
	return 0;
}

/* Its waits have an end, by a clock that nobody sets. */
static void mirror_init_work(struct mirror *mirror)
{
	pthread_condattr_t monotonic;

	if (pthread_condattr_init(&monotonic) != 0 ||
	    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) != 0 ||
	    pthread_cond_init(&mirror->work, &monotonic) != 0)
		abort();
	(void)pthread_condattr_destroy(&monotonic);
}

static struct mirror *mirror_new(const struct mirror_options *options)
{
	struct mirror *mirror = calloc(1, sizeof(*mirror));

	if (!mirror)
		abort();
	mirror->options = *options;
	mirror->options.upstreams = NULL;
	mirror->upstreams = calloc(options->upstream_count + 1, sizeof(*mirror->upstreams));
	if (!mirror->upstreams)
		abort();
	mirror->cancel.fd = -1;
	mirror->lock = (struct lock)LOCK_INIT;
	mirror_init_work(mirror);
	mirror->done = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	for (size_t i = 0; i < 2; i++)
		mirror->queues[i].last = &mirror->queues[i].first;
	return mirror;
}

int mirror_open(const struct mirror_options *options, struct mirror **out, struct err *err)
{
	AUTO(mirror_part) struct mirror *mirror = mirror_new(options);

	if (options->upstream_count > MIRROR_UPSTREAMS_MAX)
		return err_set(err, ERR_LIMIT, "more than %zu upstreams", MIRROR_UPSTREAMS_MAX);
	for (size_t i = 0; i < options->upstream_count; i++) {
		if (mirror_add(mirror, &options->upstreams[i], err) < 0)
			return -1;
	}
	if (mirror_set_default(mirror, options->default_host, err) < 0 ||
	    cancel_init(&mirror->cancel, err) < 0)
		return -1;
	*out = steal_ptr(&mirror);
	return 0;
}

void mirror_close(struct mirror *mirror)
{
	if (!mirror)
		return;
	cancel_raise(&mirror->cancel);
	lock_take(&mirror->lock);
	(void)pthread_cond_broadcast(&mirror->work);
	lock_drop(&mirror->lock);
	for (size_t i = 0; i < mirror->threads; i++)
		(void)pthread_join(mirror->thread[i], NULL);
	while (mirror->open) {
		struct mirror_task *task = mirror->open;

		mirror->open = task->next;
		mirror_task_release(task);
	}
	mirror_free(mirror);
}
