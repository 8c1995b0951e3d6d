/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_end.c - how a bake ends, each in one transaction: its record, the
 * version's status, the image's names, and the event.
 *
 * The record and the status are read again: somebody may have cancelled the
 * bake or rolled the image back while it was made.
 */
#include "bake/queue_priv.h"

#include "bake/fault.h"
#include "bake/kept.h"
#include "bake/status_push.h"
#include "layers/draft.h"
#include "layers/journal.h"

int queue_tell(struct meta *meta, const char *type, const struct bakes_record *record, json_t *data,
	       int64_t now_ms, struct err *err)
{
	AUTO(json) json_t *ours = data;
	const struct event event = {
		.at_ms = now_ms,
		.type = str_of(type),
		.agent_id = str_of(record->agent_id),
		.version = record->version,
		.bake_id = str_of(record->id),
		.data = ours,
	};
	uint64_t id;

	return journal_append(meta, &event, &id, err);
}

static json_t *queue_image_data(const struct digest *image, uint64_t size)
{
	char text[DIGEST_TEXT_MAX];

	return json_pack("{s:s, s:I}", "digest", digest_format(image, text), "sizeBytes",
			 (json_int_t)size);
}

static json_t *queue_error_data(json_t *error)
{
	return json_pack("{s:O}", "error", error);
}

/* Read the bake's record and the version's status again. */
static int queue_read_again(struct meta *meta, const struct queue_work *work,
			    struct bakes_record *record, json_t **status, struct err *err)
{
	const struct bakes_record *ours = &work->record;
	int found = bakes_find(meta, str_of(ours->id), record, err);

	if (found == 1)
		found = status_find(meta, str_of(ours->agent_id), ours->version, status, err);
	return found == 0 ? err_set(err, ERR_CORRUPT, "bake %s has lost its record", ours->id)
			  : found;
}

static int queue_put_both(struct meta *meta, const struct bakes_record *record,
			  const json_t *status, struct err *err)
{
	return bakes_put(meta, record, err) < 0 || status_put(meta, status, err) < 0 ? -1 : 0;
}

/* Commit, and count how it ended. work->record is what it became. */
static int queue_settle(struct queue_work *work, struct meta *meta, struct bakes_record *record,
			struct err *err)
{
	struct queue *queue = work->slot->queue;

	if (meta_commit(meta, err) < 0)
		return -1;
	lock_take(&queue->lock);
	if (!bakes_is_open(record->state))
		queue->counts.ended[record->state]++;
	if (record->state == BAKES_WAITING)
		queue->counts.retried++;
	lock_drop(&queue->lock);
	bakes_record_done(&work->record);
	work->record = *record;
	*record = (struct bakes_record){0};
	return 0;
}

/* 1 no later version has an image; 0, -1. */
static int queue_is_latest(struct meta *meta, const struct bakes_record *record, struct err *err)
{
	AUTO(json) json_t *latest = NULL;
	int found = status_find(meta, str_of(record->agent_id), 0, &latest, err);
	int64_t last = found == 1 ? status_version(latest) : 0;

	for (int64_t version = last; found >= 0 && version > record->version; version--) {
		AUTO(json) json_t *later = NULL;

		found = status_find(meta, str_of(record->agent_id), version, &later, err);
		if (found == 1 && status_is_ready(later))
			return 0;
	}
	return found < 0 ? -1 : 1;
}

int queue_names(struct meta *meta, const struct bakes_record *record, struct maker_names *out,
		struct err *err)
{
	int latest = queue_is_latest(meta, record, err);

	*out = (struct maker_names){
		.slug = str_of(record->slug), .version = record->version, .latest = latest == 1};
	return latest < 0 ? -1 : 0;
}

/* Give the version its image: its first, another one, or the same again. */
static int queue_serve(struct meta *meta, const struct bakes_record *record, json_t *status,
		       int64_t now_ms, struct err *err)
{
	const struct status_image image = {.digest = record->image,
					   .size = record->size,
					   .started_ms = record->started_ms,
					   .finished_ms = now_ms};
	struct status_image before;
	bool served = status_is_ready(status) && status_image(status, &before);

	if (record->state == BAKES_UNCHANGED) {
		if (record->rebake)
			status_set_rebake(status, record->id, "unchanged", now_ms, NULL);
		return queue_tell(meta, "image.unchanged", record,
				  queue_image_data(&image.digest, image.size), now_ms, err);
	}
	status_set_ready(status, &image);
	if (!served && queue_tell(meta, "image.ready", record,
				  queue_image_data(&image.digest, image.size), now_ms, err) < 0)
		return -1;
	if (!record->rebake)
		return 0;
	if (served)
		status_set_previous(status, &before);
	status_set_rebake(status, record->id, "ready", now_ms, NULL);
	return queue_tell(meta, "image.rebaked", record,
			  queue_image_data(&image.digest, image.size), now_ms, err);
}

static void queue_count_steps(struct queue *queue, const struct instruction_counts *counts)
{
	lock_take(&queue->lock);
	for (size_t kind = 0; kind < INSTRUCTION_KINDS; kind++) {
		queue->counts.steps.all[kind] += counts->all[kind];
		queue->counts.steps.cached[kind] += counts->cached[kind];
	}
	lock_drop(&queue->lock);
}

int queue_end_ready(struct queue_work *work, const struct maker_result *result, struct err *err)
{
	struct maker *maker = work->slot->queue->options.maker;
	int64_t now_ms = queue_now_ms(work->slot->queue);
	auto_bakes_record struct bakes_record record = {0};
	AUTO(json) json_t *status = NULL;
	AUTO(meta) struct meta *meta = NULL;
	struct maker_names names;
	char kept[KEPT_MAX];
	struct status_image served;

	if (meta_begin(work->slot->queue->options.store, META_WRITE, &meta, err) < 0 ||
	    queue_read_again(meta, work, &record, &status, err) < 0)
		return -1;
	record.state = status_is_ready(status) && status_image(status, &served) &&
				       digest_equal(&served.digest, &result->image)
			       ? BAKES_UNCHANGED
			       : BAKES_READY;
	record.cancelling = false;
	record.finished_ms = now_ms;
	record.image = result->image;
	record.base = result->base;
	record.size = result->size;
	record.steps = result->steps;
	record.cached_steps = result->cached_steps;
	json_decref(record.error);
	record.error = NULL;
	if (queue_names(meta, &record, &names, err) < 0)
		return -1;
	if (record.state == BAKES_READY && status_is_ready(status)) /* there will be a way back */
		names.kept = kept_owner(record.agent_id, record.version, kept);
	if (maker->publish(maker, meta, result, &names, err) < 0)
		return -1;
	status_push_begin(status, result->pushes, &result->image, record.id, now_ms);
	if (queue_serve(meta, &record, status, now_ms, err) < 0 ||
	    queue_put_both(meta, &record, status, err) < 0)
		return -1;
	if (queue_settle(work, steal_ptr(&meta), &record, err) < 0)
		return -1;
	queue_count_steps(work->slot->queue, &result->counts);
	return 0;
}

static void queue_set_error(struct bakes_record *record, json_t *error)
{
	json_decref(record->error);
	record->error = error;
}

/* It ended without an image. One that the version had stays. */
static int queue_fail(struct meta *meta, struct bakes_record *record, json_t *status,
		      int64_t now_ms, struct err *err)
{
	bool served = status_is_ready(status);

	record->finished_ms = now_ms;
	record->retry_ms = 0;
	if (record->state == BAKES_CANCELLED &&
	    queue_tell(meta, "bake.cancelled", record, NULL, now_ms, err) < 0)
		return -1;
	if (!served) {
		status_set_failed(status, record->error, now_ms);
		if (queue_tell(meta, "image.failed", record, queue_error_data(record->error),
			       now_ms, err) < 0)
			return -1;
	}
	if (record->rebake) {
		if (draft_drop(meta, str_of(record->id), err) < 0)
			return -1;
		status_set_rebake(status, record->id, "failed", now_ms, record->error);
		if (queue_tell(meta, "image.rebakeFailed", record, queue_error_data(record->error),
			       now_ms, err) < 0)
			return -1;
	}
	return queue_put_both(meta, record, status, err);
}

static void queue_set_cancelled(struct bakes_record *record)
{
	const struct fault fault = {.kind = ERR_CANCELLED,
				    .message = STR("the bake was cancelled"),
				    .log_tail = STR(""),
				    .terminal = true};

	record->state = BAKES_CANCELLED;
	record->cancelling = false;
	queue_set_error(record, fault_format(&fault));
}

int queue_put_cancelled(struct meta *meta, struct bakes_record *record, int64_t now_ms,
			struct err *err)
{
	AUTO(json) json_t *status = NULL;
	int found = status_find(meta, str_of(record->agent_id), record->version, &status, err);

	if (found == 0)
		return err_set(err, ERR_CORRUPT, "the version of bake %s has no status",
			       record->id);
	if (found < 0)
		return -1;
	queue_set_cancelled(record);
	return queue_fail(meta, record, status, now_ms, err);
}

/* It waits for its turn again, as if it had not begun. */
static int queue_return(struct meta *meta, struct bakes_record *record, json_t *status,
			struct err *err)
{
	record->state = BAKES_QUEUED;
	if (!status_is_ready(status))
		status_set_queued(status);
	return queue_put_both(meta, record, status, err);
}

int queue_put_back(struct queue *queue, struct str bake_id, struct err *err)
{
	auto_bakes_record struct bakes_record record = {0};
	AUTO(json) json_t *status = NULL;
	AUTO(meta) struct meta *meta = NULL;
	int found;

	if (meta_begin(queue->options.store, META_SHARED, &meta, err) < 0)
		return -1;
	found = bakes_find(meta, bake_id, &record, err);
	if (found == 1 && record.cancelling) {
		if (queue_put_cancelled(meta, &record, queue_now_ms(queue), err) < 0)
			return -1;
		return meta_commit(steal_ptr(&meta), err);
	}
	if (found == 1)
		found = status_find(meta, str_of(record.agent_id), record.version, &status, err);
	if (found != 1)
		return found;
	if (queue_return(meta, &record, status, err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}

static int queue_wait(struct meta *meta, struct bakes_record *record, json_t *status,
		      int64_t now_ms, struct err *err)
{
	record->state = BAKES_WAITING;
	record->retry_ms = now_ms + ((int64_t)QUEUE_RETRY_MS << (record->attempt - 1));
	if (!status_is_ready(status))
		status_set_waiting(status, record->retry_ms, record->error);
	if (record->rebake) {
		status_set_rebake(status, record->id, "baking", now_ms, record->error);
		status_set_rebake_attempt(status, record->attempt, record->retry_ms);
	}
	return queue_put_both(meta, record, status, err);
}

static json_t *queue_fault(const struct maker_result *result, const struct err *why)
{
	const struct fault fault = {
		.kind = why->kind,
		.message = str_of(why->text),
		.step = result->step,
		.line = result->line,
		.exit_code = result->exit_code,
		.log_tail = buf_str(&result->log_tail),
		.terminal = result->terminal,
	};

	return fault_format(&fault);
}

static bool queue_is_stopping(struct queue *queue)
{
	bool stopping;

	lock_take(&queue->lock);
	stopping = queue->stopping;
	lock_drop(&queue->lock);
	return stopping;
}

static int queue_judge_failure(struct queue_work *work, struct meta *meta,
			       struct bakes_record *record, json_t *status,
			       const struct maker_result *result, const struct err *why,
			       struct err *err)
{
	int64_t now_ms = queue_now_ms(work->slot->queue);
	bool stopped = why->kind == ERR_CANCELLED;

	if (record->cancelling && (stopped || !result->terminal)) {
		queue_set_cancelled(record);
		return queue_fail(meta, record, status, now_ms, err);
	}
	if (stopped && queue_is_stopping(work->slot->queue))
		return queue_return(meta, record, status, err);
	record->cancelling = false;
	queue_set_error(record, queue_fault(result, why));
	if (!result->terminal && record->attempt <= QUEUE_RETRIES)
		return queue_wait(meta, record, status, now_ms, err);
	record->state = BAKES_FAILED;
	return queue_fail(meta, record, status, now_ms, err);
}

int queue_end_failed(struct queue_work *work, const struct maker_result *result,
		     const struct err *why, struct err *err)
{
	auto_bakes_record struct bakes_record record = {0};
	AUTO(json) json_t *status = NULL;
	AUTO(meta) struct meta *meta = NULL;

	if (meta_begin(work->slot->queue->options.store, META_SHARED, &meta, err) < 0 ||
	    queue_read_again(meta, work, &record, &status, err) < 0 ||
	    queue_judge_failure(work, meta, &record, status, result, why, err) < 0)
		return -1;
	return queue_settle(work, steal_ptr(&meta), &record, err);
}
