/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_work.c - the process that a job is.
 *
 * What it has to tell is gathered, so that a thousand cached steps are one
 * write; what somebody may be waiting for is sent at once.
 */
#include "bake/job_work.h"

#include "bake/asker.h"
#include "bake/bake.h"
#include "bake/base.h"
#include "bake/fault.h"
#include "bake/job_priv.h"
#include "bake/tarball.h"
#include "bake/wire.h"
#include "bake/work.h"
#include "bake/work_watch_priv.h"

#include <poll.h>
#include <sys/resource.h>

#define JOB_GATHER_MAX ((size_t)32 * 1024) /* bytes of frames; then they are sent */
#define JOB_NICE 10                        /* whoever asks the daemon goes before what it bakes */
#define JOB_IN_USE_MS 100 /* publishing needs less, and collectors wait for the lease */

struct job_work {
	const struct job_host *host;
	struct job_order order;
	struct store *store;
	struct lease *lease;
	int contextfd;
	struct job_access access; /* to the base's registry */
	json_t *pushes;           /* owned: canonical references */
	struct cancel cancel;
	struct buf out;  /* frames that were not sent yet */
	struct buf text; /* of the step, or the base; cut */
	struct buf tail; /* of the step's log */
	struct job_progress progress;
	struct instruction_counts counts; /* steps that are done */
	struct bake_result result;
};

/* If the parent cannot be told any more it has left: cancel. */
static void work_send(struct job_work *work)
{
	struct err ignored;

	if (wire_flush(WORK_FD_ASKER, &work->out, &ignored) < 0)
		cancel_raise(&work->cancel);
}

static void work_add(struct job_work *work, enum wire_type type, struct str payload)
{
	struct err ignored;

	if (work->out.len + payload.len > JOB_GATHER_MAX)
		work_send(work);
	if (wire_add(&work->out, type, payload, &ignored) < 0)
		cancel_raise(&work->cancel);
}

static int work_add_json(struct job_work *work, enum wire_type type, const json_t *value,
			 struct err *err)
{
	auto_buf struct buf text = BUF_INIT(WIRE_PAYLOAD_MAX);

	if (json_format(value, &text, err) < 0)
		return -1;
	work_add(work, type, buf_str(&text));
	return 0;
}

static void work_tell(struct job_work *work)
{
	AUTO(json) json_t *value = NULL;
	struct err ignored;

	work->progress.text = buf_str(&work->text);
	value = job_progress_format(&work->progress);
	(void)!work_add_json(work, WIRE_PROGRESS, value, &ignored);
}

static void work_set_text(struct job_work *work, struct str text)
{
	struct err ignored;

	buf_clear(&work->text);
	text.len = text.len > JOB_TEXT_MAX ? JOB_TEXT_MAX : text.len;
	(void)!buf_add(&work->text, text, &ignored);
}

/* The end of it is kept, for the error of a step that fails. */
static void work_hear_log(struct job_work *work, struct str bytes)
{
	struct err ignored;
	size_t extra;

	work_add(work, WIRE_LOG, bytes);
	work_send(work);
	if (bytes.len > JOB_TAIL_MAX)
		bytes = str_skip(bytes, bytes.len - JOB_TAIL_MAX);
	extra = work->tail.len + bytes.len > JOB_TAIL_MAX
			? work->tail.len + bytes.len - JOB_TAIL_MAX
			: 0;
	if (extra > 0) {
		work->tail.len -= extra;
		memmove(work->tail.ptr, work->tail.ptr + extra, work->tail.len + 1);
	}
	(void)!buf_add(&work->tail, bytes, &ignored);
}

/* A warning goes into the log, too. */
static void work_hear_warning(struct job_work *work, const struct bake_event *event)
{
	auto_buf struct buf line = BUF_INIT((size_t)1024);
	struct err ignored;
	int result = event->step
			     ? buf_addf(&line, &ignored, "hearth: warning: step %zu: " STR_FMT "\n",
					event->step, STR_ARG(event->text))
			     : buf_addf(&line, &ignored, "hearth: warning: " STR_FMT "\n",
					STR_ARG(event->text));

	if (result == 0)
		work_hear_log(work, buf_str(&line));
}

static void work_hear_step(struct job_work *work, const struct bake_event *event)
{
	work->progress = (struct job_progress){
		.phase = JOB_RUNNING,
		.step = event->step,
		.of = event->of,
		.done = event->kind == BAKE_STEP_DONE,
		.cached = event->cached,
		.duration_ms = event->duration_ms,
	};
	if (work->progress.done)
		instruction_count(buf_str(&work->text), event->cached, &work->counts);
	work_tell(work);
	if (!event->cached)
		work_send(work);
}

static void work_hear_phase(struct job_work *work, enum job_phase phase,
			    const struct bake_event *event)
{
	work->progress = (struct job_progress){
		.phase = phase,
		.step = event->step,
		.of = event->of,
		.bytes = event->done,
		.size = event->size,
	};
	work_tell(work);
	work_send(work);
}

static void work_hear(void *ctx, const struct bake_event *event)
{
	struct job_work *work = ctx;

	switch (event->kind) {
	case BAKE_BASE:
		work_set_text(work, event->text);
		work_hear_phase(work, JOB_PULLING, event);
		break;
	case BAKE_PULL:
		work_hear_phase(work, JOB_PULLING, event);
		break;
	case BAKE_STEP: /* found in a moment, or told when it is made */
		work_set_text(work, event->text);
		buf_clear(&work->tail);
		break;
	case BAKE_STEP_MADE:
	case BAKE_STEP_DONE:
		work_hear_step(work, event);
		break;
	case BAKE_LOG:
		work_hear_log(work, event->text);
		break;
	case BAKE_WARNING:
		work_hear_warning(work, event);
		break;
	case BAKE_EXPORT:
		work_set_text(work, event->text);
		work_hear_phase(work, JOB_EXPORTING, event);
		break;
	case BAKE_BASE_DONE:
	case BAKE_STEP_FAILED:
	case BAKE_EXPORT_DONE:
	case BAKE_PUSH:
	case BAKE_PUSH_BLOB:
	case BAKE_PUSH_WARNING:
	case BAKE_PUSH_DONE:
	case BAKE_DONE:
		break;
	}
}

static int work_open_context(struct job_work *work, struct err *err)
{
	const struct asker asker = {
		.store = work->store,
		.worker_path = work->host->worker_path,
		.cancel = &work->cancel,
	};
	struct str text = work->order.spec.context;
	struct digest digest;

	if (text.len == 0)
		return 0;
	if (!str_starts(text, STR("sha256:")))
		return err_set(
			err, ERR_INVALID,
			"context: expected a digest, as contexts.put answers it, found " STR_FMT,
			STR_ARG(text));
	if (digest_parse(text, &digest, err) < 0 ||
	    tarball_open(&asker, &digest, &work->contextfd, err) < 0)
		return err_ctx(err, "context");
	return 0;
}

/* Check where to push before a long bake, not after it. */
static int work_check_push(struct job_work *work, struct str text, struct err *err)
{
	auto_buf struct buf canonical = BUF_INIT(REFERENCE_TEXT_MAX);
	struct reference reference;

	if (reference_parse(text, &reference, err) < 0)
		return -1;
	if (reference.kind != REFERENCE_REGISTRY || reference.has_digest)
		return err_set(err, ERR_INVALID, STR_FMT ": expected HOST/NAME[:TAG]",
			       STR_ARG(text));
	if (reference_format(&reference, &canonical, err) < 0)
		return -1;
	(void)json_array_append_new(work->pushes, json_from_str(buf_str(&canonical)));
	return 0;
}

static int work_check_pushes(struct job_work *work, struct err *err)
{
	const struct spec *spec = &work->order.spec;

	for (size_t i = 0; i < spec->push_count; i++) {
		if (work_check_push(work, spec->push[i], err) < 0)
			return err_ctx(err, "push");
	}
	return 0;
}

static int work_open(struct job_work *work, struct err *err)
{
	const struct job_order *order = &work->order;
	const struct store_options options = {.path = order->store_path.ptr,
					      .map_bytes = order->map_bytes};

	if (base_check_remote(order->spec.base, err) < 0)
		return err_ctx(err, "base");
	if (work_check_pushes(work, err) < 0 || store_open(&options, &work->store, err) < 0 ||
	    lease_open(work->store, &work->lease, err) < 0 ||
	    work->host->access(work->host->ctx, order->spec.base, &work->cancel, &work->access,
			       err) < 0)
		return -1;
	return work_open_context(work, err);
}

static int work_bake(struct job_work *work, struct err *err)
{
	static const struct digest none;
	const struct job_order *order = &work->order;
	const struct bake_options options = {
		.store = work->store,
		.lease = work->lease,
		.worker_path = work->host->worker_path,
		.puller_path = work->host->puller_path,
		.agent_path = work->host->agent_path,
		.contextfd = work->contextfd,
		.rebake = order->rebake ? order->bake_id : NULL,
		.from_step = order->from_step,
		.base = digest_equal(&order->base, &none) ? NULL : &order->base,
		.no_host_files = true,
		.unpublished = true,
		.places = work->access.places,
		.registry_user = work->access.user,
		.registry_password = work->access.password,
		.runtime = order->runtime ? order->runtime : work->host->runtime,
		.gc = work->host->gc,
		.hosts = order->hosts,
		.host_count = order->host_count,
		.secrets = &order->secrets,
		.proxies = work->access.proxies,
		.event = work_hear,
		.event_ctx = work,
		.cancel = &work->cancel,
	};

	return bake_run(&order->spec, &options, &work->result, err);
}

static json_t *work_digest(const struct digest *digest)
{
	static const struct digest none;
	char text[DIGEST_TEXT_MAX];

	return digest_equal(digest, &none) ? json_null() : json_string(digest_format(digest, text));
}

static json_t *work_list_keys(const struct job_work *work)
{
	json_t *keys = json_array();

	for (size_t i = 0; i < work->order.spec.step_count; i++)
		(void)json_array_append_new(keys, work_digest(&work->result.keys[i]));
	return keys;
}

static json_t *work_format_counts(const struct instruction_counts *counts)
{
	json_t *list = json_array();

	for (size_t kind = 0; kind < INSTRUCTION_KINDS; kind++)
		(void)json_array_append_new(list, json_pack("[I, I]", (json_int_t)counts->all[kind],
							    (json_int_t)counts->cached[kind]));
	return list;
}

/* job_wire.c says what is in it. */
static json_t *work_format_result(const struct job_work *work)
{
	const struct bake_result *result = &work->result;
	const struct spec *spec = &work->order.spec;
	char platform[PLATFORM_TEXT_MAX];
	json_t *value = json_pack("{s:I, s:I, s:I, s:I, s:I, s:b, s:s}", "sizeBytes",
				  (json_int_t)result->size, "layers", (json_int_t)result->layers,
				  "steps", (json_int_t)result->steps, "cachedSteps",
				  (json_int_t)result->cached_steps, "createdMs",
				  (json_int_t)result->created_ms, "unchanged",
				  digest_equal(&result->image, &work->order.previous), "platform",
				  platform_format(&spec->platform, platform));

	if (!value)
		abort();
	(void)json_object_set_new(value, "rebake", json_boolean(work->order.rebake));
	(void)json_object_set_new(value, "bakeId", json_string(work->order.bake_id));
	(void)json_object_set_new(value, "digest", work_digest(&result->image));
	(void)json_object_set_new(value, "base", work_digest(&result->base));
	(void)json_object_set_new(value, "slug", json_from_str(spec->slug));
	(void)json_object_set_new(value, "baseText", json_from_str(spec->base));
	(void)json_object_set(value, "push", work->pushes);
	(void)json_object_set_new(value, "kinds", work_format_counts(&work->counts));
	(void)json_object_set_new(value, "keys", work_list_keys(work));
	return value;
}

/* A command that took too long would do so again; a registry may not. */
static bool work_is_passing(const struct bake_result *result, enum err_kind kind)
{
	return fault_is_passing(kind) && !(kind == ERR_TIMEOUT && result->step_late);
}

static void work_tell_error(struct job_work *work, const struct err *why)
{
	const struct job_error error = {
		.why = *why,
		.terminal = !work_is_passing(&work->result, why->kind),
		.step = work->result.failed_step,
		.line = work->result.failed_line,
		.exit_code = work->result.exit_code,
		.log_tail = buf_str(&work->tail),
	};
	AUTO(json) json_t *value = job_error_format(&error);
	struct err ignored;

	(void)!work_add_json(work, WIRE_ERROR, value, &ignored);
	work_send(work);
}

static void work_await_parent(struct job_work *work, int timeout_ms)
{
	struct pollfd left = {.fd = cancel_fd(&work->cancel), .events = POLLIN};

	while (!cancel_is_raised(&work->cancel)) {
		if (poll(&left, 1, timeout_ms) == 0)
			break;
	}
}

/*
 * The lease lasts until the parent has published, usually for milliseconds; if
 * it takes longer the lease rests, and collectors may work.
 */
static int work_tell_result(struct job_work *work, struct err *err)
{
	AUTO(json) json_t *value = work_format_result(work);

	if (lease_add(work->lease, &work->result.image, err) < 0 ||
	    work_add_json(work, WIRE_RESULT, value, err) < 0)
		return -1;
	work_send(work);
	work_await_parent(work, JOB_IN_USE_MS);
	if (cancel_is_raised(&work->cancel))
		return 0;
	if (lease_rest(work->lease, err) < 0)
		return 0; /* still in use then */
	work_await_parent(work, -1);
	return 0;
}

static int work_receive_order(struct job_work *work, struct err *err)
{
	auto_buf struct buf payload = BUF_INIT(WIRE_PAYLOAD_MAX);

	if (work_receive(&payload, err) < 0)
		return -1;
	if (job_order_parse(buf_str(&payload), &work->order, err) < 0)
		return -1;
	return job_receive_secrets(&work->order, WORK_FD_ASKER, err);
}

static int work_watched(struct job_work *work, struct err *err)
{
	struct work_watch watch;
	int result;

	if (work_watch_start(&watch, &work->cancel, err) < 0)
		return -1;
	result = work_open(work, err);
	if (result == 0)
		result = work_bake(work, err);
	if (result == 0)
		result = work_tell_result(work, err);
	work_watch_stop(&watch);
	return result;
}

static void work_close(struct job_work *work)
{
	free(work->result.keys);
	json_decref(work->pushes);
	auto_close_release(&work->contextfd);
	lease_close(work->lease);
	store_close(work->store);
	job_order_done(&work->order);
	buf_done(&work->out);
	buf_done(&work->text);
	buf_done(&work->tail);
	cancel_done(&work->cancel);
}

int job_work(const struct job_host *host)
{
	struct job_work work = {
		.host = host,
		.contextfd = -1,
		.pushes = json_array(),
		.out = BUF_INIT(WIRE_PAYLOAD_MAX + JOB_GATHER_MAX + WIRE_HEADER),
		.text = BUF_INIT(JOB_TEXT_MAX),
		.tail = BUF_INIT(JOB_TAIL_MAX),
	};
	struct err err = {0};
	int result;

	if (cancel_init(&work.cancel, &err) < 0)
		return err_exit_code(err.kind);
	if (getpriority(PRIO_PROCESS, 0) < JOB_NICE)
		(void)setpriority(PRIO_PROCESS, 0, JOB_NICE);
	result = work_receive_order(&work, &err);
	if (result == 0)
		result = work_watched(&work, &err);
	if (result < 0)
		work_tell_error(&work, &err);
	work_close(&work);
	return result < 0 ? 1 : 0;
}
