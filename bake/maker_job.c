/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/maker_job.h"

#include "bake/agent.h"
#include "bake/image.h"
#include "layers/base/clock.h"
#include "registry/tag.h"

#include <poll.h>
#include <stdio.h>

struct maker_job {
	struct maker maker;
	struct maker_job_options options;
};

static const struct maker_job_options *maker_job_options(const struct maker *maker)
{
	return &((const struct maker_job *)maker)->options;
}

/* One job, from its start to its last event. */
struct maker_job_run {
	const struct maker_ear *ear;
	struct job *job;
	const struct job_result *result; /* of the job, once it has told */
	struct maker_result *out;
	struct err *err;
	int64_t end_ms; /* on the monotonic clock; 0 for never */
	bool leaving;   /* it was told to stop */
	bool late;      /* because its time was over */
};

static int maker_job_read_spec(struct store *store, const struct bakes_record *record,
			       struct buf *out, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	auto_agent_version struct agent_version version = {0};
	struct agent agent;

	if (meta_begin(store, META_READ, &meta, err) < 0 ||
	    agent_need(meta, str_of(record->agent_id), &agent, err) < 0 ||
	    agent_need_version(meta, &agent, record->version, &version, err) < 0)
		return -1;
	return json_format(version.spec, out, err);
}

static void maker_job_hear_progress(const struct maker_job_run *run,
				    const struct job_progress *progress)
{
	const struct status_progress told = {
		.phase = job_phase_name(progress->phase),
		.step = progress->step,
		.of = progress->of,
		.text = progress->text,
		.cached = progress->cached,
	};

	run->ear->progress(run->ear->ctx, &told);
}

static void maker_job_fail(const struct maker_job_run *run, const struct job_error *error)
{
	struct maker_result *out = run->out;
	struct str tail = error->log_tail;
	struct err ignored;

	out->terminal = error->terminal || run->late;
	out->step = error->step;
	out->line = error->line;
	out->exit_code = error->exit_code;
	*run->err = error->why;
	if (run->late)
		(void)err_set(run->err, ERR_TIMEOUT, "not done in the time that a bake may take");
	buf_clear(&out->log_tail);
	if (tail.len > JOB_TAIL_MAX)
		tail = str_skip(tail, tail.len - JOB_TAIL_MAX);
	if (buf_add(&out->log_tail, tail, &ignored) < 0)
		buf_clear(&out->log_tail); /* the tail fits, since the ceiling is no less */
}

static void maker_job_take(const struct maker_job_run *run, const struct job_result *result)
{
	struct maker_result *out = run->out;

	out->image = result->image;
	out->base = result->base;
	out->size = result->size;
	out->steps = result->steps;
	out->cached_steps = result->cached_steps;
	out->counts = result->counts;
	out->pushes = result->pushes;
}

/* 1 it was the last, 0 there is more, -1. */
static int maker_job_hear(struct maker_job_run *run, const struct job_event *event)
{
	switch (event->kind) {
	case JOB_PROGRESS:
		maker_job_hear_progress(run, &event->progress);
		return 0;
	case JOB_LOG:
		run->ear->log(run->ear->ctx, event->log);
		return 0;
	case JOB_RESULT:
		maker_job_take(run, event->result);
		run->result = event->result;
		return 1;
	case JOB_ERROR:
		break;
	}
	maker_job_fail(run, event->error);
	return -1;
}

/* Read all events that have come. As maker_job_hear(). */
static int maker_job_read(struct maker_job_run *run)
{
	struct job_event event;
	int ended = 0;

	while (ended == 0 && job_read(run->job, &event) == 1)
		ended = maker_job_hear(run, &event);
	return ended;
}

/* The time that is left, for poll(): -1 is for ever. */
static int maker_job_left_ms(const struct maker_job_run *run)
{
	int64_t left_ms = run->end_ms - clock_monotonic_ms();

	if (run->end_ms == 0 || run->leaving)
		return -1;
	return left_ms < 0 ? 0 : left_ms > INT32_MAX ? INT32_MAX : (int)left_ms;
}

/* Wait until it has something to say. It is told once to stop, and then has time to clean up. */
static void maker_job_await(struct maker_job_run *run, const struct cancel *cancel)
{
	struct pollfd fds[] = {
		{.fd = job_fd(run->job), .events = POLLIN},
		{.fd = run->leaving ? -1 : cancel_fd(cancel), .events = POLLIN},
	};
	int ready = poll(fds, 2, maker_job_left_ms(run));

	if (run->leaving || (ready != 0 && !cancel_is_raised(cancel)))
		return;
	run->late = !cancel_is_raised(cancel);
	run->leaving = true;
	job_cancel(run->job);
}

static int maker_job_listen(struct maker_job_run *run, const struct cancel *cancel)
{
	int ended = maker_job_read(run);

	while (ended == 0) {
		maker_job_await(run, cancel);
		ended = maker_job_read(run);
	}
	return ended < 0 ? -1 : 0;
}

/* What publish and release need. */
struct maker_job_kept {
	struct job *job;
	const struct job_result *result; /* of the job */
};

static int maker_job_start(const struct maker_job_options *options, const struct maker_order *order,
			   struct job **out, struct err *err)
{
	auto_buf struct buf spec = BUF_INIT(AGENT_SPEC_MAX);
	auto_secrets struct secrets secrets = {0};
	struct job_request request = options->request;

	if (maker_job_read_spec(request.store, order->record, &spec, err) < 0 ||
	    (options->secrets && options->secrets(options->ctx, &secrets, err) < 0))
		return -1;
	request.bake_id = order->record->id;
	request.spec = buf_str(&spec);
	request.base = order->base;
	request.previous = order->previous;
	request.rebake = order->record->rebake;
	request.from_step = order->record->from_step;
	request.secrets = &secrets;
	return job_start(&request, out, err);
}

static int maker_job_make(struct maker *maker, const struct maker_order *order,
			  const struct maker_ear *ear, const struct cancel *cancel,
			  struct maker_result *out, struct err *err)
{
	const struct maker_job_options *options = maker_job_options(maker);
	struct maker_job_run run = {.ear = ear, .out = out, .err = err};
	struct maker_job_kept *kept;

	if (maker_job_start(options, order, &run.job, err) < 0)
		return -1;
	if (options->timeout_ms > 0)
		run.end_ms = clock_monotonic_ms() + options->timeout_ms;
	kept = calloc(1, sizeof(*kept));
	if (!kept)
		abort();
	kept->job = run.job;
	out->kept = kept;
	if (maker_job_listen(&run, cancel) < 0)
		return -1;
	kept->result = run.result;
	return 0;
}

static struct job_names maker_job_names(const struct maker_names *names)
{
	return (struct job_names){.slug = names->slug,
				  .version = (uint64_t)names->version,
				  .latest = names->latest,
				  .kept = names->kept};
}

static int maker_job_publish(struct maker *maker, struct meta *meta,
			     const struct maker_result *result, const struct maker_names *names,
			     struct err *err)
{
	const struct maker_job_kept *kept = result->kept;
	const struct job_names ours = maker_job_names(names);
	struct pusher *pusher = maker_job_options(maker)->pusher;

	if (pusher && json_array_size(kept->result->pushes) > 0)
		meta_on_commit(meta, pusher_wake, pusher);
	return job_publish(meta, kept->result, &ours, err);
}

/* 0 where the image has a record, ERR_GONE where it was collected. */
static int maker_job_check_known(struct meta *meta, const struct digest *image, struct err *err)
{
	auto_image struct image known = {0};
	char text[DIGEST_TEXT_MAX];
	int found = image_find(meta, image, &known, err);

	if (found == 0)
		return err_set(err, ERR_GONE, "image %s is no more", digest_format(image, text));
	return found < 0 ? -1 : 0;
}

static int maker_job_push_again(struct maker *maker, struct meta *meta,
				const struct maker_return *what, struct err *err)
{
	struct pusher *pusher = maker_job_options(maker)->pusher;
	const json_t *reference;
	size_t i;

	json_array_foreach(what->pushes, i, reference)
	{
		if (pushes_put(meta, json_str(reference), what->image, str_of(what->bake_id),
			       clock_now_ms(), err) < 0)
			return -1;
	}
	if (pusher && json_array_size(what->pushes) > 0)
		meta_on_commit(meta, pusher_wake, pusher);
	return 0;
}

/* The platform is that of the image which has the name now. */
static int maker_job_restore(struct maker *maker, struct meta *meta,
			     const struct maker_return *what, struct err *err)
{
	const struct job_names ours = maker_job_names(&what->names);
	auto_buf struct buf name = BUF_INIT(REFERENCE_TEXT_MAX);
	struct tag tag;
	int found;

	if (maker_job_check_known(meta, what->image, err) < 0 ||
	    job_format_name(ours.slug, ours.version, &name, err) < 0)
		return -1;
	found = tag_find_only(meta, buf_str(&name), &tag, err);
	if (found == 0)
		return err_set(err, ERR_CONFLICT, "%s names no image", name.ptr);
	if (found < 0 || job_name_image(meta, what->image, &tag.platform, &ours, err) < 0 ||
	    job_restore_steps(meta, what->image, ours.kept, err) < 0)
		return -1;
	return maker_job_push_again(maker, meta, what, err);
}

static void maker_job_release(struct maker *maker, struct maker_result *result)
{
	struct maker_job_kept *kept = result->kept;

	(void)maker;
	if (!kept)
		return;
	job_end(kept->job);
	free(kept);
	result->kept = NULL;
}

struct maker *maker_job_new(const struct maker_job_options *options)
{
	struct maker_job *ours = calloc(1, sizeof(*ours));

	if (!ours)
		abort();
	*ours = (struct maker_job){
		.maker = {maker_job_make, maker_job_publish, maker_job_restore, maker_job_release},
		.options = *options,
	};
	return &ours->maker;
}

void maker_job_free(struct maker *maker)
{
	free(maker);
}
