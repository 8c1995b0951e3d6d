/* SPDX-License-Identifier: Apache-2.0 */
/* mirror_task.c - what is wanted of upstreams: a task, once for all who want it, in two queues. */
#include "registry/mirror_priv.h"

#include <stdio.h>

static struct mirror_queue *mirror_task_queue(const struct mirror_task *task)
{
	return &task->mirror->queues[task->kind == MIRROR_FILL];
}

void mirror_task_tell(const struct mirror_task *task)
{
	const struct mirror_options *options = &task->mirror->options;

	if (options->wake)
		options->wake(options->wake_ctx, task->topic);
}

static uint64_t mirror_task_topic(const struct mirror_wish *wish)
{
	char text[REFERENCE_REPOSITORY_MAX + DIGEST_TEXT_MAX + 32];

	(void)snprintf(text, sizeof(text), "mirror %d %s " STR_FMT, (int)wish->kind,
		       wish->place->key, STR_ARG(wish->name));
	return http_topic(str_of(text));
}

struct mirror_task *mirror_task_new(struct mirror *mirror, const struct mirror_wish *wish)
{
	struct mirror_task *task = calloc(1, sizeof(*task));

	if (!task)
		abort();
	task->mirror = mirror;
	task->kind = wish->kind;
	task->place = *wish->place;
	(void)snprintf(task->name, sizeof(task->name), STR_FMT, STR_ARG(wish->name));
	if (wish->digest)
		task->digest = *wish->digest;
	task->topic = mirror_task_topic(wish);
	task->refs = 2; /* the caller's, and that of the open list */
	task->fd = -1;
	atomic_init(&task->state, MIRROR_QUEUED);
	atomic_init(&task->size, MIRROR_SIZE_UNKNOWN);
	return task;
}

static void mirror_task_free(struct mirror_task *task)
{
	auto_close_release(&task->fd);
	free(task);
}

void mirror_task_release(struct mirror_task *task)
{
	struct mirror *mirror;
	bool last;

	if (!task)
		return;
	mirror = task->mirror;
	lock_take(&mirror->lock);
	last = --task->refs == 0;
	lock_drop(&mirror->lock);
	if (last)
		mirror_task_free(task);
}

struct mirror_task *mirror_task_join_locked(struct mirror *mirror, const struct mirror_wish *wish)
{
	const uint64_t topic = mirror_task_topic(wish);

	for (struct mirror_task *task = mirror->open; task; task = task->next) {
		if (task->topic != topic || task->kind != wish->kind ||
		    strcmp(task->place.key, wish->place->key) != 0 ||
		    !str_equal(str_of(task->name), wish->name))
			continue;
		task->refs++;
		return task;
	}
	return NULL;
}

struct mirror_task *mirror_task_join(struct mirror *mirror, const struct mirror_wish *wish)
{
	struct mirror_task *task;

	lock_take(&mirror->lock);
	task = mirror_task_join_locked(mirror, wish);
	lock_drop(&mirror->lock);
	return task;
}

void mirror_task_enqueue_locked(struct mirror *mirror, struct mirror_task *task)
{
	struct mirror_queue *queue = mirror_task_queue(task);

	task->next = mirror->open;
	mirror->open = task;
	*queue->last = task;
	queue->last = &task->next_queued;
	mirror->waiting++;
	task->place.upstream->waiting++;
	(void)pthread_cond_signal(&mirror->work);
}

/* Whether an upstream has no more than its share, which is all where it is the only one. */
static bool mirror_task_may_run_locked(const struct mirror *mirror, const struct mirror_task *task)
	REQUIRES(mirror->lock);
static bool mirror_task_may_run_locked(const struct mirror *mirror, const struct mirror_task *task)
{
	const struct mirror_upstream *upstream = task->place.upstream;
	bool alone = mirror->upstream_count == 1;

	if (!alone && upstream->running >= MIRROR_THREADS_SHARE)
		return false;
	if (task->kind != MIRROR_FILL)
		return true;
	return mirror->fills < MIRROR_FILLS_MAX && (alone || upstream->fills < MIRROR_FILLS_SHARE);
}

static struct mirror_task *mirror_task_take_locked(struct mirror *mirror,
						   struct mirror_queue *queue)
	REQUIRES(mirror->lock);
static struct mirror_task *mirror_task_take_locked(struct mirror *mirror,
						   struct mirror_queue *queue)
{
	struct mirror_task **at = &queue->first;
	struct mirror_task *task;

	while (*at && !mirror_task_may_run_locked(mirror, *at))
		at = &(*at)->next_queued;
	task = *at;
	if (!task)
		return NULL;
	*at = task->next_queued;
	if (queue->last == &task->next_queued)
		queue->last = at;
	return task;
}

static void mirror_task_count_locked(struct mirror *mirror, struct mirror_task *task, bool runs)
	REQUIRES(mirror->lock);
static void mirror_task_count_locked(struct mirror *mirror, struct mirror_task *task, bool runs)
{
	struct mirror_upstream *upstream = task->place.upstream;
	size_t fills = task->kind == MIRROR_FILL;

	if (!runs) {
		upstream->running--;
		upstream->fills -= fills;
		mirror->fills -= fills;
		return;
	}
	upstream->waiting--;
	mirror->waiting--;
	upstream->running++;
	upstream->fills += fills;
	mirror->fills += fills;
}

struct mirror_task *mirror_task_dequeue_locked(struct mirror *mirror)
{
	struct mirror_task *task = mirror_task_take_locked(mirror, &mirror->queues[0]);

	if (!task)
		task = mirror_task_take_locked(mirror, &mirror->queues[1]);
	if (!task)
		return NULL;
	mirror_task_count_locked(mirror, task, true);
	atomic_store(&task->state, MIRROR_RUNNING);
	return task;
}

void mirror_task_finish_locked(struct mirror *mirror, struct mirror_task *task)
{
	struct mirror_task **at = &mirror->open;

	while (*at != task)
		at = &(*at)->next;
	*at = task->next;
	mirror_task_count_locked(mirror, task, false);
	atomic_store(&task->state, MIRROR_DONE);
	(void)pthread_cond_broadcast(&mirror->done);
}
