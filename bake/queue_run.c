/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_run.c - one attempt at a bake:
 *
 *	begin     it runs, says its record and its status; what it inherits is found
 *	make      by the maker; progress is shown, and the log written
 *	end       queue_end.c; where that transaction fails, the bake stays open
 */
#include "bake/queue_priv.h"

#include "bake/bake_log.h"
#define LOG_MODULE "bake"
#include "layers/base/log.h"

#include <inttypes.h>

/* The version before, and what its base was. */
struct queue_base {
	struct str name; /* what the base is called that is looked for */
	int64_t version;
	struct digest image; /* that it serves */
	struct digest digest;
};

/* The newest earlier version that has an image. 1, 0 there is none, -1. */
static int queue_find_predecessor(struct meta *meta, const struct bakes_record *record,
				  struct queue_base *out, struct err *err)
{
	struct status_image image;

	for (int64_t version = record->version - 1; version > 0; version--) {
		AUTO(json) json_t *status = NULL;
		int found = status_find(meta, str_of(record->agent_id), version, &status, err);

		if (found < 0)
			return -1;
		if (found == 0 || !status_is_ready(status) || !status_image(status, &image))
			continue;
		out->version = version;
		out->image = image.digest;
		return 1;
	}
	return 0;
}

/* The last bake that made the image: after a rollback that is not the last one of all. */
static int queue_match_base(void *ctx, const struct bakes_record *record, struct err *err)
{
	struct queue_base *base = ctx;

	(void)err;
	if (record->version != base->version || !digest_equal(&record->image, &base->image))
		return 0;
	if (str_equal(record->base_name, base->name))
		base->digest = record->base;
	return 1;
}

/* A new version stands on its predecessor's base while that has the same name. */
static int queue_inherit(struct meta *meta, struct queue_work *work, struct err *err)
{
	struct queue_base base = {.name = work->record.base_name};
	struct status_image image;
	int found;

	if (status_image(work->status, &image))
		work->previous = image.digest;
	if (work->record.rebake)
		return 0;
	found = queue_find_predecessor(meta, &work->record, &base, err);
	if (found != 1)
		return found;
	if (bakes_each(meta, str_of(work->record.agent_id), STR(""), queue_match_base, &base, err) <
	    0)
		return -1;
	work->base = base.digest;
	return 0;
}

static void queue_mark_running(struct queue_work *work, int64_t now_ms)
{
	struct bakes_record *record = &work->record;

	if (record->attempt == 0 || record->state == BAKES_WAITING)
		record->attempt++;
	if (record->started_ms == 0)
		record->started_ms = now_ms;
	record->state = BAKES_RUNNING;
	record->retry_ms = 0;
	if (!status_is_ready(work->status))
		status_set_running(work->status, record->attempt, record->started_ms);
	if (!record->rebake)
		return;
	status_set_rebake(work->status, record->id, "baking", record->started_ms, NULL);
	status_set_rebake_attempt(work->status, record->attempt, 0);
}

/* Remove logs before records: a log without a record would stay for ever. */
static int queue_forget_logs(struct store *store, const struct turn *turn, struct bakes_ids *old,
			     struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	int result;

	if (meta_begin(store, META_READ, &meta, err) < 0)
		return -1;
	result = bakes_find_old(meta, str_of(turn->agent_id), old, err);
	meta_abort(steal_ptr(&meta));
	for (size_t i = 0; result == 0 && i < old->count; i++)
		bake_log_remove(store, str_of(old->at[i]));
	return result;
}

/* Forget bakes of which the agent has enough later ones. */
static int queue_forget_old(struct meta *meta, const struct queue_work *work,
			    const struct bakes_ids *old, struct err *err)
{
	for (size_t i = 0; i < old->count; i++) {
		if (bakes_remove(meta, str_of(work->record.agent_id), str_of(old->at[i]), err) < 0)
			return -1;
	}
	return 0;
}

static int queue_put_work(struct meta *meta, struct queue_work *work, struct err *err)
{
	auto_buf struct buf body = BUF_INIT(STATUS_BODY_MAX);

	if (bakes_put(meta, &work->record, err) < 0 || status_put(meta, work->status, err) < 0)
		return -1;
	return status_render(work->status, &body, work->etag, err);
}

/* 1 it runs, 0 there is nothing to be done, -1. */
static int queue_begin(struct queue_slot *slot, const struct turn *turn,
		       const struct bakes_ids *old, struct queue_work *out, struct err *err)
{
	AUTO(queue_work) struct queue_work work = {.slot = slot};
	AUTO(meta) struct meta *meta = NULL;
	int found;

	if (meta_begin(slot->queue->options.store, META_SHARED, &meta, err) < 0)
		return -1;
	found = bakes_find(meta, str_of(turn->bake_id), &work.record, err);
	if (found != 1 || !bakes_is_open(work.record.state))
		return found < 0 ? -1 : 0;
	found = status_find(meta, str_of(turn->agent_id), turn->version, &work.status, err);
	if (found == 0)
		return err_set(err, ERR_CORRUPT, "the version of bake %s has no status",
			       turn->bake_id);
	if (found < 0 || queue_inherit(meta, &work, err) < 0)
		return -1;
	queue_mark_running(&work, queue_now_ms(slot->queue));
	if (queue_put_work(meta, &work, err) < 0 || queue_forget_old(meta, &work, old, err) < 0 ||
	    meta_commit(steal_ptr(&meta), err) < 0)
		return -1;
	*out = work;
	work = (struct queue_work){0};
	return 1;
}

/* A bake's progress and log while it is made. */
struct queue_hearing {
	struct queue_work *work;
	struct bake_log log;
	size_t step;       /* the step whose output the log has now */
	bool inside;       /* the log is in the middle of a line */
	const char *phase; /* what is shown, here and below; "" for nothing yet */
	size_t shown_step;
	bool shown_cached;
};

static void queue_log(struct queue_hearing *hearing, struct str bytes)
{
	struct err err;

	if (bake_log_add(&hearing->log, bytes, &err) == 0)
		return;
	log_warn("log not written bake=%s why=\"%s\"", hearing->work->record.id, err.text);
	bake_log_close(&hearing->log);
	hearing->log.size = BAKE_LOG_BYTES_MAX;
}

/* A line for a step that begins, and one for a step that is found. */
static void queue_log_step(struct queue_hearing *hearing, const struct status_progress *progress)
{
	auto_buf struct buf line = BUF_INIT((size_t)16 * 1024);
	struct err ignored;

	if (progress->step == 0)
		return;
	if (progress->step != hearing->step &&
	    buf_addf(&line, &ignored, "%s[%zu/%zu] " STR_FMT "\n", hearing->inside ? "\n" : "",
		     progress->step, progress->of, STR_ARG(progress->text)) < 0)
		return;
	if (progress->cached &&
	    buf_addf(&line, &ignored, "[%zu/%zu] CACHED\n", progress->step, progress->of) < 0)
		return;
	hearing->step = progress->step;
	hearing->inside = hearing->inside && line.len == 0;
	queue_log(hearing, buf_str(&line));
}

/* Whether progress changes what is shown: pulled bytes, for example, do not. */
static bool queue_is_news(struct queue_hearing *hearing, const struct status_progress *progress)
{
	if (strcmp(hearing->phase, progress->phase) == 0 && hearing->shown_step == progress->step &&
	    hearing->shown_cached == progress->cached)
		return false;
	hearing->phase = progress->phase;
	hearing->shown_step = progress->step;
	hearing->shown_cached = progress->cached;
	return true;
}

/* Somebody may have changed what is stored: how a push went, or a rollback. */
static int queue_refresh(struct queue_work *work, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	auto_buf struct buf body = BUF_INIT(STATUS_BODY_MAX);
	struct str agent_id = str_of(work->record.agent_id);
	char etag[STATUS_ETAG_MAX];
	json_t *status;

	if (meta_begin(work->slot->queue->options.store, META_READ, &meta, err) < 0 ||
	    status_read(meta, agent_id, work->record.version, &body, etag, err) < 0)
		return -1;
	if (body.len == 0 || memcmp(etag, work->etag, sizeof(etag)) == 0)
		return 0;
	if (json_parse(buf_str(&body), STATUS_BODY_MAX, &status, err) < 0)
		return -1;
	json_decref(work->status);
	work->status = status;
	memcpy(work->etag, etag, sizeof(etag));
	return 0;
}

static void queue_hear_progress(void *ctx, const struct status_progress *progress)
{
	struct queue_hearing *hearing = ctx;
	struct queue_work *work = hearing->work;
	struct queue *queue = work->slot->queue;
	struct err ignored;

	if (!queue_is_news(hearing, progress))
		return;
	queue_log_step(hearing, progress);
	if (queue_refresh(work, &ignored) == 0 &&
	    live_show(queue->live, work->slot->place, work->etag, work->status, progress,
		      &ignored) == 0)
		queue_say_changed(queue, str_of(work->record.agent_id));
}

static void queue_hear_log(void *ctx, struct str bytes)
{
	struct queue_hearing *hearing = ctx;

	if (bytes.len > 0)
		hearing->inside = bytes.ptr[bytes.len - 1] != '\n';
	queue_log(hearing, bytes);
	queue_say_changed(hearing->work->slot->queue, str_of(hearing->work->record.agent_id));
}

/* Let others raise this cancel from now on; NULL: no longer. */
static void queue_set_cancel(struct queue_slot *slot, struct cancel *cancel)
{
	lock_take(&slot->queue->lock);
	slot->cancel = cancel;
	if (cancel && slot->unwanted)
		cancel_raise(cancel);
	lock_drop(&slot->queue->lock);
}

static int queue_make_heard(struct queue_work *work, const struct maker_order *order,
			    const struct maker_ear *ear, struct maker_result *out, struct err *err)
{
	struct maker *maker = work->slot->queue->options.maker;
	struct cancel cancel;
	int result;

	if (cancel_init(&cancel, err) < 0)
		return -1;
	queue_set_cancel(work->slot, &cancel);
	result = maker->make(maker, order, ear, &cancel, out, err);
	queue_set_cancel(work->slot, NULL);
	cancel_done(&cancel);
	return result;
}

static int queue_make(struct queue_work *work, struct maker_result *out, struct err *err)
{
	static const struct digest none;
	const struct maker_order order = {
		.record = &work->record,
		.base = digest_equal(&work->base, &none) ? NULL : &work->base,
		.previous = digest_equal(&work->previous, &none) ? NULL : &work->previous,
	};
	struct queue_hearing hearing = {.work = work, .log = BAKE_LOG_INIT, .phase = ""};
	const struct maker_ear ear = {queue_hear_progress, queue_hear_log, &hearing};
	struct queue *queue = work->slot->queue;
	int result;

	if (bake_log_open(queue->options.store, str_of(work->record.id), &hearing.log, err) < 0)
		return -1;
	result = queue_make_heard(work, &order, &ear, out, err);
	bake_log_close(&hearing.log);
	return result;
}

static int queue_attempt(struct queue_work *work, struct err *err)
{
	struct maker *maker = work->slot->queue->options.maker;
	struct maker_result result = MAKER_RESULT_INIT;
	struct err why = {0};
	int ended = queue_make(work, &result, &why);

	if (ended == 0)
		ended = queue_end_ready(work, &result, &why);
	if (ended < 0)
		ended = queue_end_failed(work, &result, &why, err);
	maker->release(maker, &result);
	buf_done(&result.log_tail);
	live_hide(work->slot->queue->live, work->slot->place);
	return ended;
}

/* For the operator, who reads no events: how an attempt ended. */
static void queue_log_end(const struct bakes_record *record)
{
	const json_t *why = json_object_get(record->error, "message");
	const char *state = bakes_state_name(record->state);

	if (json_is_string(why))
		log_warn("bake ended bake=%s agent=%s version=%" PRId64 " state=%s why=\"%s\"",
			 record->id, record->slug, record->version, state, json_string_value(why));
	else
		log_info("bake ended bake=%s agent=%s version=%" PRId64 " state=%s", record->id,
			 record->slug, record->version, state);
}

int64_t queue_run(struct queue_slot *slot, const struct turn *turn)
{
	struct queue *queue = slot->queue;
	AUTO(queue_work) struct queue_work work = {.slot = slot};
	struct bakes_ids old;
	struct err err;
	int begun;

	begun = queue_forget_logs(queue->options.store, turn, &old, &err);
	if (begun == 0)
		begun = queue_begin(slot, turn, &old, &work, &err);
	if (begun == 1)
		queue_say_changed(queue, str_of(turn->agent_id));
	if (begun == 1 && queue_attempt(&work, &err) < 0)
		begun = -1;
	if (begun == 1)
		queue_log_end(&work.record);
	queue_say_changed(queue, str_of(turn->agent_id));
	if (begun < 0) {
		log_warn("bake not recorded bake=%s why=\"%s\"", turn->bake_id, err.text);
		return queue_now_ms(queue) + QUEUE_AGAIN_MS;
	}
	return work.record.state == BAKES_WAITING ? work.record.retry_ms : QUEUE_DONE;
}
