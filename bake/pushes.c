/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pushes.c - the hex of a reference's sha256, behind "w" where it waits and "f"
 * where it has failed -> v, reference, image, bakeId, attempt, retryMs, error.
 */
#include "bake/pushes.h"

#include "bake/fault.h"
#include "bake/queue.h"
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

int pushes_put(struct meta *meta, struct str reference, const struct digest *image,
	       struct str bake_id, struct err *err)
{
	struct pushes_record record = {.image = *image};

	if (reference.len >= sizeof(record.reference) || bake_id.len >= sizeof(record.bake_id))
		return err_set(err, ERR_LIMIT, "push to a reference of %zu bytes", reference.len);
	(void)snprintf(record.reference, sizeof(record.reference), STR_FMT, STR_ARG(reference));
	(void)snprintf(record.bake_id, sizeof(record.bake_id), STR_FMT, STR_ARG(bake_id));
	return pushes_write(meta, &record, err);
}

struct pushes_search {
	struct pushes_record *first;
	bool found;
};

static int pushes_consider(void *ctx, struct str key, const json_t *value, struct err *err)
{
	struct pushes_search *search = ctx;
	int64_t retry_ms;

	if (json_need_int(value, PUSHES, "retryMs", &retry_ms, err) < 0)
		return -1;
	if (search->found && retry_ms >= search->first->retry_ms)
		return 0;
	search->found = true;
	return pushes_read(key, value, search->first, err);
}

int pushes_next(struct meta *meta, struct pushes_record *out, struct err *err)
{
	struct pushes_search search = {.first = out};

	if (meta_each(meta, PUSHES, STR("w"), pushes_consider, &search, err) < 0)
		return -1;
	return search.found;
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

static bool pushes_is_same(const struct pushes_record *a, const struct pushes_record *b)
{
	return digest_equal(&a->image, &b->image) && strcmp(a->bake_id, b->bake_id) == 0;
}

/* It failed once more. */
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

int pushes_settle(struct meta *meta, const struct pushes_record *record, const struct err *why,
		  int64_t now_ms, struct err *err)
{
	auto_pushes_record struct pushes_record now = {.error = NULL};
	struct str reference = str_of(record->reference);
	char key[PUSHES_KEY_MAX];
	int found = pushes_find(meta, reference, &now, err);

	if (found != 1 || now.failed || !pushes_is_same(&now, record))
		return found < 0 ? -1 : 0;
	if (!why)
		return meta_del(meta, PUSHES, pushes_key(PUSHES_WAITING, reference, key), err) < 0
			       ? -1
			       : 0;
	pushes_set_failed(&now, why, now_ms);
	return pushes_write(meta, &now, err);
}

void pushes_record_done(struct pushes_record *record)
{
	json_decref(record->error);
	record->error = NULL;
}
