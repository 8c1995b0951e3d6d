/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pushes.c - the hex of a reference's sha256, behind "w" where it waits and "f"
 * where it has failed -> v, reference, image, bakeId, attempt, retryMs, error.
 */
#include "bake/pushes.h"

#include "bake/fault.h"
#include "bake/queue_priv.h"
#include "bake/status_push.h"
#include "layers/digest_json.h"

#include <stdio.h>

#define PUSHES "pushes"
#define PUSHES_WAITING 'w'
#define PUSHES_FAILED 'f'
#define PUSHES_KEY_MAX (DIGEST_HEX_MAX + 1)

static struct str pushes_key(char state, struct str reference, char text[static PUSHES_KEY_MAX])
{
	struct digest digest;
	char hex[DIGEST_HEX_MAX];

	digest_of(reference, &digest);
	(void)snprintf(text, PUSHES_KEY_MAX, "%c%s", state, digest_hex(&digest, hex));
	return str_of(text);
}

static int pushes_read(struct str key, const json_t *value, struct pushes_record *out,
		       struct err *err)
{
	struct str reference;
	struct str bake_id;
	struct str image;

	if (json_need_string(value, PUSHES, "reference", &reference, err) < 0 ||
	    json_need_string(value, PUSHES, "bakeId", &bake_id, err) < 0 ||
	    json_need_string(value, PUSHES, "image", &image, err) < 0 ||
	    digest_parse(image, &out->image, err) < 0 ||
	    json_need_int(value, PUSHES, "attempt", &out->attempt, err) < 0 ||
	    json_need_int(value, PUSHES, "retryMs", &out->retry_ms, err) < 0)
		return -1;
	if (reference.len >= sizeof(out->reference) || bake_id.len >= sizeof(out->bake_id))
		return err_set(err, ERR_CORRUPT, PUSHES ": a text is too long");
	(void)snprintf(out->reference, sizeof(out->reference), STR_FMT, STR_ARG(reference));
	(void)snprintf(out->bake_id, sizeof(out->bake_id), STR_FMT, STR_ARG(bake_id));
	out->failed = key.ptr[0] == PUSHES_FAILED;
	json_decref(out->error);
	out->error = json_incref(json_object_get(value, "error"));
	return 0;
}

static int pushes_write(struct meta *meta, const struct pushes_record *record, struct err *err)
{
	AUTO(json) json_t *value = json_object();
	struct str reference = str_of(record->reference);
	char key[PUSHES_KEY_MAX];
	char state = record->failed ? PUSHES_FAILED : PUSHES_WAITING;
	char other = record->failed ? PUSHES_WAITING : PUSHES_FAILED;

	json_set_int(value, "v", 1);
	(void)json_object_set_new(value, "reference", json_from_str(reference));
	json_set_text(value, "bakeId", record->bake_id);
	digest_json_set(value, "image", &record->image);
	json_set_int(value, "attempt", record->attempt);
	json_set_int(value, "retryMs", record->retry_ms);
	if (record->error)
		(void)json_object_set(value, "error", record->error);
	if (meta_del(meta, PUSHES, pushes_key(other, reference, key), err) < 0)
		return -1;
	return meta_put(meta, PUSHES, pushes_key(state, reference, key), value, err);
}

int pushes_find(struct meta *meta, struct str reference, struct pushes_record *out, struct err *err)
{
	static const char states[] = {PUSHES_WAITING, PUSHES_FAILED};
	int found = 0;

	for (size_t i = 0; found == 0 && i < sizeof(states); i++) {
		AUTO(json) json_t *value = NULL;
		char key[PUSHES_KEY_MAX];

		found = meta_get(meta, PUSHES, pushes_key(states[i], reference, key), &value, err);
		if (found == 1 && pushes_read(str_of(key), value, out, err) < 0)
			return -1;
	}
	return found;
}

/* The bake that made it, where that is still known, and the status that tells of it. */
static int pushes_find_told(struct meta *meta, const struct pushes_record *record,
			    struct bakes_record *bake, json_t **status, struct err *err)
{
	int found = bakes_find(meta, str_of(record->bake_id), bake, err);

	return found == 1 ? status_find(meta, str_of(bake->agent_id), bake->version, status, err)
			  : found;
}

/* *record became that: its version's status says so, and an event where there is a type. */
static int pushes_tell(struct meta *meta, const struct pushes_record *record, const char *state,
		       const char *event, int64_t now_ms, struct err *err)
{
	const struct status_push push = {
		.reference = str_of(record->reference),
		.image = &record->image,
		.bake_id = record->bake_id,
		.state = state,
		.at_ms = now_ms,
		.attempt = record->attempt,
		.retry_ms = record->failed ? 0 : record->retry_ms,
		.error = record->error,
	};
	auto_bakes_record struct bakes_record bake = {0};
	AUTO(json) json_t *status = NULL;
	char text[DIGEST_TEXT_MAX];
	int found = pushes_find_told(meta, record, &bake, &status, err);

	if (found != 1)
		return found;
	if (status_push_set(status, &push) && status_put(meta, status, err) < 0)
		return -1;
	if (!event)
		return 0;
	return queue_tell(meta, event, &bake,
			  json_pack("{s:s, s:s, s:O*}", "reference", record->reference, "digest",
				    digest_format(&record->image, text), "error", record->error),
			  now_ms, err);
}

/* Another's, that has not come to its end. */
static int pushes_replace(struct meta *meta, const struct pushes_record *by, int64_t now_ms,
			  struct err *err)
{
	auto_pushes_record struct pushes_record before = {.error = NULL};
	int found = pushes_find(meta, str_of(by->reference), &before, err);

	if (found != 1 || before.failed || strcmp(before.bake_id, by->bake_id) == 0)
		return found < 0 ? -1 : 0;
	return pushes_tell(meta, &before, "replaced", NULL, now_ms, err);
}

int pushes_put(struct meta *meta, struct str reference, const struct digest *image,
	       struct str bake_id, int64_t now_ms, struct err *err)
{
	struct pushes_record record = {.image = *image};

	if (reference.len >= sizeof(record.reference) || bake_id.len >= sizeof(record.bake_id))
		return err_set(err, ERR_LIMIT, "push to a reference of %zu bytes", reference.len);
	(void)snprintf(record.reference, sizeof(record.reference), STR_FMT, STR_ARG(reference));
	(void)snprintf(record.bake_id, sizeof(record.bake_id), STR_FMT, STR_ARG(bake_id));
	if (pushes_replace(meta, &record, now_ms, err) < 0)
		return -1;
	return pushes_write(meta, &record, err);
}

struct pushes_search {
	int64_t now_ms;
	pushes_may_fn *may;
	void *may_ctx;
	struct pushes_record *found;
	int64_t next_ms;
};

/* 1 at the one that is looked for. */
static int pushes_consider(void *ctx, struct str key, const json_t *value, struct err *err)
{
	struct pushes_search *search = ctx;
	struct pushes_record *record = search->found;

	if (pushes_read(key, value, record, err) < 0)
		return -1;
	if (!search->may(search->may_ctx, record))
		return 0;
	if (record->retry_ms <= search->now_ms)
		return 1;
	if (record->retry_ms < search->next_ms)
		search->next_ms = record->retry_ms;
	return 0;
}

int pushes_find_due(struct meta *meta, int64_t now_ms, pushes_may_fn *may, void *ctx,
		    struct pushes_record *out, int64_t *out_next_ms, struct err *err)
{
	struct pushes_search search = {now_ms, may, ctx, out, INT64_MAX};
	int found = meta_each(meta, PUSHES, STR("w"), pushes_consider, &search, err);

	*out_next_ms = search.next_ms;
	return found;
}

static bool pushes_is_same(const struct pushes_record *a, const struct pushes_record *b)
{
	return digest_equal(&a->image, &b->image) && strcmp(a->bake_id, b->bake_id) == 0;
}

/* Record one more failure. */
static void pushes_set_failed(struct pushes_record *record, const struct err *why, int64_t now_ms)
{
	record->attempt++;
	record->failed = !fault_is_passing(why->kind) || record->attempt > QUEUE_RETRIES;
	record->retry_ms = now_ms + ((int64_t)QUEUE_RETRY_MS << (record->attempt - 1));
	const struct fault fault = {.kind = why->kind,
				    .message = str_of(why->text),
				    .log_tail = STR(""),
				    .terminal = record->failed};

	json_decref(record->error);
	record->error = fault_format(&fault);
}

static int pushes_set_done(struct meta *meta, struct pushes_record *record, int64_t now_ms,
			   struct err *err)
{
	char key[PUSHES_KEY_MAX];

	pushes_record_done(record);
	record->attempt = record->retry_ms = 0;
	if (meta_del(meta, PUSHES, pushes_key(PUSHES_WAITING, str_of(record->reference), key),
		     err) < 0)
		return -1;
	return pushes_tell(meta, record, "pushed", "image.pushed", now_ms, err);
}

int pushes_settle(struct meta *meta, const struct pushes_record *record, const struct err *why,
		  int64_t now_ms, struct err *err)
{
	auto_pushes_record struct pushes_record now = {.error = NULL};
	int found = pushes_find(meta, str_of(record->reference), &now, err);

	if (found != 1 || now.failed || !pushes_is_same(&now, record))
		return found < 0 ? -1 : 0;
	if (!why)
		return pushes_set_done(meta, &now, now_ms, err);
	pushes_set_failed(&now, why, now_ms);
	if (pushes_write(meta, &now, err) < 0)
		return -1;
	return pushes_tell(meta, &now, now.failed ? "failed" : "pushing", "image.pushFailed",
			   now_ms, err);
}

void pushes_record_done(struct pushes_record *record)
{
	json_decref(record->error);
	record->error = NULL;
}
