/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzipper.c - one thread, and the jobs that wait for it:
 *
 *	WAITING -> BUSY     its turn has come
 *	BUSY -> (gone)      the tag is there, or the image has moved: ask again
 *	BUSY -> FAILED      until its time is over
 */
#include "api/gzipper.h"

#include "bake/convert_request.h"
#include "layers/base/clock.h"
#include "layers/base/lock.h"
#define LOG_MODULE "api"
#include "layers/base/log.h"
#include "layers/base/thread.h"
#include "layers/lease.h"
#include "registry/gzip_tag.h"
#include "registry/holding.h"

#include <stdio.h>

enum gzipper_state { GZIPPER_FREE, GZIPPER_WAITING, GZIPPER_BUSY, GZIPPER_FAILED };

struct gzipper_job {
	enum gzipper_state state;
	char repository[GRAMMAR_NAME_MAX + 1];
	char tag[GRAMMAR_TAG_MAX + 1];
	struct digest target;
	uint64_t topic;
	uint64_t turn;    /* those that came before go before */
	int64_t until_ms; /* of a failure, on the monotonic clock */
	struct err why;
};

struct gzipper {
	struct gzipper_options options;
	pthread_t thread;
	struct cancel cancel;
	struct lock lock;
	pthread_cond_t changed;
	/* guarded by lock: */
	struct gzipper_job jobs[GZIPPER_JOBS_MAX];
	uint64_t turns;
	uint64_t made;
	bool ended;
};

/* The next in turn, waited for; NULL at the end. */
static struct gzipper_job *gzipper_next_locked(struct gzipper *gzipper) REQUIRES(gzipper->lock);
static struct gzipper_job *gzipper_next_locked(struct gzipper *gzipper)
{
	struct gzipper_job *next = NULL;

	while (!gzipper->ended) {
		for (size_t i = 0; i < GZIPPER_JOBS_MAX; i++) {
			struct gzipper_job *job = &gzipper->jobs[i];

			if (job->state == GZIPPER_WAITING && (!next || job->turn < next->turn))
				next = job;
		}
		if (next)
			return next;
		(void)pthread_cond_wait(&gzipper->changed, &gzipper->lock.os);
	}
	return NULL;
}

/* The variant, named: a lease holds it until it is. 1; 0 the image has moved; -1. */
static int gzipper_convert(struct gzipper *gzipper, const struct gzipper_job *job, struct err *err)
{
	const struct asker asker = {.store = gzipper->options.store,
				    .worker_path = gzipper->options.worker_path,
				    .cancel = &gzipper->cancel};
	AUTO(lease) struct lease *lease = NULL;
	struct digest variant;

	if (lease_open(asker.store, &lease, err) < 0 || lease_add(lease, &job->target, err) < 0 ||
	    lease_rest(lease, err) < 0 ||
	    convert_ask_image(&asker, &job->target, LAYER_GZIP, &variant, err) < 0 ||
	    lease_add(lease, &variant, err) < 0 || lease_resume(lease, err) < 0)
		return -1;
	return gzip_tag_put(asker.store, str_of(job->repository), str_of(job->tag), &job->target,
			    &variant, err);
}

static void gzipper_settle(struct gzipper *gzipper, struct gzipper_job *job, int result,
			   const struct err *why)
{
	if (result < 0)
		log_warn("gzip variant not made image=%s:%s why=\"%s\"", job->repository, job->tag,
			 why->text);
	else
		log_info("gzip variant made image=%s:%s", job->repository, job->tag);
	lock_take(&gzipper->lock);
	gzipper->made += result == 1;
	job->state = result < 0 ? GZIPPER_FAILED : GZIPPER_FREE;
	job->until_ms = clock_monotonic_ms() + GZIPPER_FAILED_MS;
	if (result < 0)
		job->why = *why;
	lock_drop(&gzipper->lock);
	gzipper->options.wake(gzipper->options.wake_ctx, job->topic);
}

static void *gzipper_run(void *ctx)
{
	struct gzipper *gzipper = ctx;
	struct gzipper_job *job;

	for (;;) {
		struct err why = {0};

		lock_take(&gzipper->lock);
		job = gzipper_next_locked(gzipper);
		if (job)
			job->state = GZIPPER_BUSY;
		lock_drop(&gzipper->lock);
		if (!job)
			return NULL;
		gzipper_settle(gzipper, job, gzipper_convert(gzipper, job, &why), &why);
	}
}

int gzipper_start(const struct gzipper_options *options, struct gzipper **out, struct err *err)
{
	struct gzipper *gzipper = calloc(1, sizeof(*gzipper));

	if (!gzipper)
		abort();
	gzipper->options = *options;
	gzipper->lock = (struct lock)LOCK_INIT;
	gzipper->changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	gzipper->cancel.fd = -1;
	if (cancel_init(&gzipper->cancel, err) < 0 ||
	    thread_start(&gzipper->thread, gzipper_run, gzipper, err) < 0) {
		cancel_done(&gzipper->cancel);
		free(gzipper);
		return -1;
	}
	*out = gzipper;
	return 0;
}

void gzipper_stop(struct gzipper *gzipper)
{
	if (!gzipper)
		return;
	cancel_raise(&gzipper->cancel);
	lock_take(&gzipper->lock);
	gzipper->ended = true;
	(void)pthread_cond_signal(&gzipper->changed);
	lock_drop(&gzipper->lock);
	(void)pthread_join(gzipper->thread, NULL);
	cancel_done(&gzipper->cancel);
	free(gzipper);
}

static bool gzipper_is(const struct gzipper_job *job, struct str repository, struct str tag,
		       const struct digest *target)
{
	return job->state != GZIPPER_FREE && str_equal(str_of(job->repository), repository) &&
	       str_equal(str_of(job->tag), tag) && digest_equal(&job->target, target);
}

/* The job for this image, or a free one, or NULL; failures whose time is over are forgotten. */
static struct gzipper_job *gzipper_find_locked(struct gzipper *gzipper, struct str repository,
					       struct str tag, const struct digest *target)
	REQUIRES(gzipper->lock);
static struct gzipper_job *gzipper_find_locked(struct gzipper *gzipper, struct str repository,
					       struct str tag, const struct digest *target)
{
	int64_t now_ms = clock_monotonic_ms();
	struct gzipper_job *free_one = NULL;

	for (size_t i = 0; i < GZIPPER_JOBS_MAX; i++) {
		struct gzipper_job *job = &gzipper->jobs[i];

		if (job->state == GZIPPER_FAILED && job->until_ms <= now_ms)
			job->state = GZIPPER_FREE;
		if (gzipper_is(job, repository, tag, target))
			return job;
		if (job->state == GZIPPER_FREE)
			free_one = job;
	}
	return free_one;
}

static void gzipper_add_locked(struct gzipper *gzipper, struct gzipper_job *job,
			       struct str repository, struct str tag, const struct digest *target)
	REQUIRES(gzipper->lock);
static void gzipper_add_locked(struct gzipper *gzipper, struct gzipper_job *job,
			       struct str repository, struct str tag, const struct digest *target)
{
	char topic[HOLDING_REFERENCE_MAX + 16];

	*job = (struct gzipper_job){
		.state = GZIPPER_WAITING, .target = *target, .turn = gzipper->turns++};
	(void)snprintf(job->repository, sizeof(job->repository), STR_FMT, STR_ARG(repository));
	(void)snprintf(job->tag, sizeof(job->tag), STR_FMT, STR_ARG(tag));
	(void)snprintf(topic, sizeof(topic), "gzip %s:%s", job->repository, job->tag);
	job->topic = http_topic(str_of(topic));
	(void)pthread_cond_signal(&gzipper->changed);
}

int gzipper_make(void *ctx, struct str repository, struct str tag, const struct digest *target,
		 uint64_t *topic, struct err *err)
{
	struct gzipper *gzipper = ctx;
	struct gzipper_job *job;
	int result = 0;

	if (repository.len > GRAMMAR_NAME_MAX || tag.len > GRAMMAR_TAG_MAX)
		return err_set(err, ERR_INVALID, "too long a name");
	lock_take(&gzipper->lock);
	job = gzipper_find_locked(gzipper, repository, tag, target);
	if (!job) {
		result = err_set(err, ERR_BUSY, "too many gzip variants are wanted at once");
	} else if (job->state == GZIPPER_FAILED) {
		*err = job->why;
		result = -1;
	} else {
		if (job->state == GZIPPER_FREE)
			gzipper_add_locked(gzipper, job, repository, tag, target);
		*topic = job->topic;
	}
	lock_drop(&gzipper->lock);
	return result;
}

uint64_t gzipper_count(struct gzipper *gzipper)
{
	uint64_t made;

	lock_take(&gzipper->lock);
	made = gzipper->made;
	lock_drop(&gzipper->lock);
	return made;
}
