/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_ask.c - requests: a version's bake, a rebake, a rollback. Each is
 * written in a transaction, whose commit wakes the threads.
 */
#include "bake/queue_priv.h"

#include "bake/kept.h"
#include "bake/status_push.h"

#include <stdio.h>

static void queue_copy_id(struct str id, char out[static ID_TEXT_MAX])
{
	(void)snprintf(out, ID_TEXT_MAX, STR_FMT, STR_ARG(id));
}

/* Add a bake, and the event of it. */
static int queue_add(struct queue *queue, struct meta *meta, struct bakes_record *record,
		     struct err *err)
{
	const char *type = record->rebake ? "image.rebaking" : "image.baking";

	if (bakes_add(meta, record, err) < 0 ||
	    queue_tell(meta, type, record, NULL, record->created_ms, err) < 0)
		return -1;
	meta_on_commit(meta, queue_wake, queue);
	return 0;
}

int queue_put(struct queue *queue, struct meta *meta, const struct queue_version *version,
	      struct err *err)
{
	AUTO(json) json_t *status = status_new(version->agent_id, version->slug, version->version);
	struct bakes_record record = {.version = version->version,
				      .base_name = version->base,
				      .created_ms = queue_now_ms(queue)};

	if (version->base.len == 0)
		return status_put(meta, status, err);
	queue_copy_id(version->agent_id, record.agent_id);
	(void)snprintf(record.slug, sizeof(record.slug), STR_FMT, STR_ARG(version->slug));
	if (queue_add(queue, meta, &record, err) < 0)
		return -1;
	status_set_queued(status);
	return status_put(meta, status, err);
}

/* The latest version's status; it has an image, or is to have one. */
static int queue_need_image(struct meta *meta, struct str agent_id, json_t **out, struct err *err)
{
	AUTO(json) json_t *status = NULL;
	int found = status_find(meta, agent_id, 0, &status, err);
	struct str state;

	if (found == 0)
		return err_set(err, ERR_NOT_FOUND, "no agent " STR_FMT, STR_ARG(agent_id));
	if (found < 0 || json_need_string(status, "", "status", &state, err) < 0)
		return -1;
	if (str_equal(state, STR("none")))
		return err_set(err, ERR_CONFLICT, "version %d of " STR_FMT " has no image",
			       (int)status_version(status), STR_ARG(status_slug(status)));
	*out = steal_ptr(&status);
	return 0;
}

struct queue_search {
	int64_t version;
	char *base; /* owned */
};

/* Find the base's name in a bake of the same version. */
static int queue_match_version(void *ctx, const struct bakes_record *record, struct err *err)
{
	struct queue_search *search = ctx;

	(void)err;
	if (record->version != search->version)
		return 0;
	search->base = str_dup(record->base_name);
	return 1;
}

static int queue_add_rebake(struct queue *queue, struct meta *meta, json_t *status,
			    struct bakes_record *record, struct err *err)
{
	struct queue_search search = {.version = record->version};
	auto_free char *base = NULL;
	const json_t *state = json_object_get(status, "status");

	if (bakes_each(meta, str_of(record->agent_id), STR(""), queue_match_version, &search, err) <
	    0)
		return -1;
	base = search.base;
	record->base_name = base ? str_of(base) : STR("");
	record->created_ms = queue_now_ms(queue);
	if (queue_add(queue, meta, record, err) < 0)
		return -1;
	if (str_equal(json_str(state), STR("failed")))
		status_set_queued(status);
	status_set_rebake(status, record->id, "baking", record->created_ms, NULL);
	record->base_name = STR("");
	return status_put(meta, status, err);
}

int queue_put_rebake(struct queue *queue, struct meta *meta, struct str agent_id, size_t from_step,
		     struct queue_ticket *out, struct err *err)
{
	auto_bakes_record struct bakes_record record = {.rebake = true, .from_step = from_step};
	AUTO(json) json_t *status = NULL;
	int found;

	if (queue_need_image(meta, agent_id, &status, err) < 0)
		return -1;
	found = bakes_find_open(meta, agent_id, status_version(status), true, &record, err);
	if (found < 0)
		return -1;
	if (found == 0) {
		record.version = status_version(status);
		queue_copy_id(agent_id, record.agent_id);
		(void)snprintf(record.slug, sizeof(record.slug), STR_FMT,
			       STR_ARG(status_slug(status)));
		if (queue_add_rebake(queue, meta, status, &record, err) < 0)
			return -1;
	}
	memcpy(out->bake_id, record.id, sizeof(out->bake_id));
	out->joined = found == 1;
	return 0;
}

int queue_rebake(struct queue *queue, struct str agent_id, size_t from_step,
		 struct queue_ticket *out, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;

	if (meta_begin(queue->options.store, META_SHARED, &meta, err) < 0 ||
	    queue_put_rebake(queue, meta, agent_id, from_step, out, err) < 0)
		return -1;
	return out->joined ? 0 : meta_commit(steal_ptr(&meta), err);
}

/* The id of the rebake that is undone, for the event. */
static struct str queue_last_rebake(const json_t *status)
{
	const json_t *id = json_object_get(json_object_get(status, "rebake"), "bakeId");

	return json_is_string(id) ? json_str(id) : STR("");
}

static int queue_serve_again(struct queue *queue, struct meta *meta, json_t *status,
			     const struct status_image *image, struct err *err)
{
	struct maker *maker = queue->options.maker;
	struct bakes_record about = {.version = status_version(status)};
	AUTO(json) json_t *pushes = status_push_references(status);
	struct maker_return what = {.image = &image->digest, .bake_id = about.id, .pushes = pushes};
	char text[DIGEST_TEXT_MAX];
	char kept[KEPT_MAX];

	queue_copy_id(json_str(json_object_get(status, "agentId")), about.agent_id);
	queue_copy_id(queue_last_rebake(status), about.id);
	(void)snprintf(about.slug, sizeof(about.slug), STR_FMT, STR_ARG(status_slug(status)));
	if (queue_names(meta, &about, &what.names, err) < 0)
		return -1;
	what.names.kept = kept_owner(about.agent_id, about.version, kept);
	if (maker->restore(maker, meta, &what, err) < 0)
		return -1;
	status_set_ready(status, image);
	status_set_previous(status, NULL);
	status_push_begin(status, pushes, &image->digest, about.id, queue_now_ms(queue));
	if (status_put(meta, status, err) < 0)
		return -1;
	return queue_tell(meta, "image.rebaked", &about,
			  json_pack("{s:s, s:I, s:b}", "digest",
				    digest_format(&image->digest, text), "sizeBytes",
				    (json_int_t)image->size, "rolledBack", 1),
			  queue_now_ms(queue), err);
}

int queue_rollback(struct queue *queue, struct str agent_id, struct digest *out, struct err *err)
{
	AUTO(json) json_t *status = NULL;
	AUTO(meta) struct meta *meta = NULL;
	struct status_image image;

	if (meta_begin(queue->options.store, META_WRITE, &meta, err) < 0 ||
	    queue_need_image(meta, agent_id, &status, err) < 0)
		return -1;
	if (!status_is_ready(status) || !status_previous(status, &image))
		return err_set(err, ERR_CONFLICT,
			       "version %d of " STR_FMT " has no image from before a rebake",
			       (int)status_version(status), STR_ARG(status_slug(status)));
	if (queue_serve_again(queue, meta, status, &image, err) < 0 ||
	    meta_commit(steal_ptr(&meta), err) < 0)
		return -1;
	queue_say_changed(queue, agent_id);
	*out = image.digest;
	return 0;
}
