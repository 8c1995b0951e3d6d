/* SPDX-License-Identifier: Apache-2.0 */
/*
 * draft.c - table `steps.drafts`: a bake's id, a slash and the hex of a step's
 * key -> the members of `steps` and of `steps.details` (step.c) in one; and
 * "replacedBy", the diff id of what took a kept one's place.
 */
#include "layers/draft.h"

#include "layers/digest_json.h"
#include "layers/failure.h"
#include "layers/step_priv.h"

#include <stdio.h>

#define DRAFT_TABLE "steps.drafts"
#define DRAFT_KEY_MAX (DRAFT_OWNER_MAX + DIGEST_HEX_MAX + 1)

/* The key of one draft; or, without a step's key, the prefix of all of an owner's. */
static int draft_key(struct str owner, const struct digest *key, char text[static DRAFT_KEY_MAX],
		     struct err *err)
{
	char hex[DIGEST_HEX_MAX] = "";

	if (owner.len == 0 || owner.len > DRAFT_OWNER_MAX || memchr(owner.ptr, '/', owner.len))
		return err_set(err, ERR_INVALID, STR_FMT " is no bake's id", STR_ARG(owner));
	if (key)
		(void)digest_hex(key, hex);
	(void)snprintf(text, DRAFT_KEY_MAX, STR_FMT "/%s", STR_ARG(owner), hex);
	return 0;
}

static int draft_read(const json_t *value, bool with_details, struct step_record *out,
		      struct err *err)
{
	if (step_read(value, out, err) < 0 ||
	    (with_details && step_read_details(value, out, err) < 0)) {
		err->kind = ERR_CORRUPT;
		return -1;
	}
	return 0;
}

int draft_find(struct meta *meta, struct str owner, const struct digest *key, bool with_details,
	       struct step_record *out, struct err *err)
{
	AUTO(json) json_t *value = NULL;
	char text[DRAFT_KEY_MAX];
	int found;

	if (draft_key(owner, key, text, err) < 0)
		return -1;
	found = meta_get(meta, DRAFT_TABLE, str_of(text), &value, err);
	if (found <= 0)
		return found;
	out->key = *key;
	return draft_read(value, with_details, out, err) < 0 ? err_ctx(err, "draft %s", text) : 1;
}

int draft_put(struct meta *meta, struct str owner, struct step_record *record, struct err *err)
{
	AUTO(json) json_t *value = json_object();
	char text[DRAFT_KEY_MAX];

	if (draft_key(owner, &record->key, text, err) < 0 || step_settle(meta, record, err) < 0)
		return -1;
	step_write(record, value);
	step_write_details(record, value);
	if (meta_put(meta, DRAFT_TABLE, str_of(text), value, err) < 0)
		return -1;
	return failure_remove(meta, &record->key, err) < 0 ? -1 : 0;
}

/*
 * Whether later equal layers are to be replaced by this one, since no earlier
 * one is known any more.
 */
static int draft_is_first(struct meta *meta, const struct step_record *record, struct err *err)
{
	static const struct digest zero;
	auto_step_record struct step_record earlier = STEP_RECORD_INIT;
	int found;

	if (record->empty || digest_equal(&record->content, &zero))
		return 0;
	found = step_find_content(meta, &record->parent, &record->content, &earlier, err);
	return found < 0 ? -1 : found == 0;
}

static bool draft_is_same(const struct step_record *a, const struct step_record *b)
{
	return a->empty == b->empty && digest_equal(&a->diff_id, &b->diff_id);
}

/* The record in whose place this one comes, if it says anything else. */
static int draft_keep(struct meta *meta, struct str kept, const struct step_record *record,
		      struct err *err)
{
	auto_step_record struct step_record before = STEP_RECORD_INIT;
	AUTO(json) json_t *value = json_object();
	char text[DRAFT_KEY_MAX];
	int found = step_find(meta, &record->key, true, &before, err);

	if (found != 1 || draft_is_same(&before, record))
		return found < 0 ? -1 : 0;
	if (draft_key(kept, &record->key, text, err) < 0)
		return -1;
	step_write(&before, value);
	step_write_details(&before, value);
	digest_json_set(value, "replacedBy", &record->diff_id);
	return meta_put(meta, DRAFT_TABLE, str_of(text), value, err);
}

static int draft_publish_one(struct meta *meta, struct str owner, struct str kept,
			     const struct digest *key, struct err *err)
{
	auto_step_record struct step_record record = STEP_RECORD_INIT;
	int found = draft_find(meta, owner, key, true, &record, err);
	int first;

	if (found <= 0)
		return found;
	if (kept.len > 0 && draft_keep(meta, kept, &record, err) < 0)
		return -1;
	first = draft_is_first(meta, &record, err);
	return first < 0 ? -1 : step_store(meta, &record, first == 1, err);
}

int draft_publish(struct meta *meta, struct str owner, struct str kept, const struct digest *keys,
		  size_t count, struct err *err)
{
	if (kept.len > 0 && draft_drop(meta, kept, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (draft_publish_one(meta, owner, kept, &keys[i], err) < 0)
			return -1;
	}
	return draft_drop(meta, owner, err);
}

/* Whether nobody made the step anew since it was replaced: 1, 0 it was not kept, or was; -1. */
static int draft_may_return(struct meta *meta, struct str kept, const struct digest *key,
			    struct err *err)
{
	auto_step_record struct step_record now = STEP_RECORD_INIT;
	AUTO(json) json_t *value = NULL;
	struct digest by;
	char text[DRAFT_KEY_MAX];
	int found;

	if (draft_key(kept, key, text, err) < 0)
		return -1;
	found = meta_get(meta, DRAFT_TABLE, str_of(text), &value, err);
	if (found != 1)
		return found;
	if (digest_json_need(value, "", "replacedBy", &by, err) < 0)
		return err_ctx(err, "draft %s", text);
	found = step_find(meta, key, false, &now, err);
	return found < 0 ? -1 : found == 0 || digest_equal(&now.diff_id, &by);
}

int draft_restore(struct meta *meta, struct str kept, const struct digest *keys, size_t count,
		  struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		int may = draft_may_return(meta, kept, &keys[i], err);

		if (may < 0 ||
		    (may == 1 && draft_publish_one(meta, kept, STR(""), &keys[i], err) < 0))
			return -1;
	}
	return draft_drop(meta, kept, err);
}

static int draft_drop_one(void *ctx, struct str key, const json_t *value, struct err *err)
{
	(void)value;
	return meta_del(ctx, DRAFT_TABLE, key, err) < 0 ? -1 : 0;
}

int draft_drop(struct meta *meta, struct str owner, struct err *err)
{
	char text[DRAFT_KEY_MAX];

	if (draft_key(owner, NULL, text, err) < 0)
		return -1;
	return meta_each(meta, DRAFT_TABLE, str_of(text), draft_drop_one, meta, err);
}

int draft_remove(struct meta *meta, struct str owner, const struct digest *key, struct err *err)
{
	char text[DRAFT_KEY_MAX];

	if (draft_key(owner, key, text, err) < 0)
		return -1;
	return meta_del(meta, DRAFT_TABLE, str_of(text), err);
}

struct draft_walk {
	draft_each_fn *fn;
	void *ctx;
};

static int draft_visit(void *ctx, struct str key, const json_t *value, struct err *err)
{
	const struct draft_walk *walk = ctx;
	auto_step_record struct step_record record = STEP_RECORD_INIT;
	struct str hex = key;
	struct str owner;

	if (!str_cut(&hex, '/', &owner) || step_parse_key(hex, &record.key, err) < 0 ||
	    draft_read(value, true, &record, err) < 0)
		return err_set(err, ERR_CORRUPT, "draft " STR_FMT " cannot be read", STR_ARG(key));
	return walk->fn(walk->ctx, owner, &record, err);
}

int draft_each(struct meta *meta, draft_each_fn *fn, void *ctx, struct err *err)
{
	struct draft_walk walk = {fn, ctx};

	return meta_each(meta, DRAFT_TABLE, STR(""), draft_visit, &walk, err);
}

int draft_each_log(const struct step_record *record, step_log_each_fn *fn, void *ctx,
		   struct err *err)
{
	static const struct digest zero;
	struct digest listing;
	int result = 0;

	if (step_find_listing(record->components, &listing, err) < 0)
		return -1;
	if (!digest_equal(&listing, &zero))
		result = fn(ctx, &record->key, &listing, err);
	if (result == 0 && !digest_equal(&record->log.blob, &zero))
		result = fn(ctx, &record->key, &record->log.blob, err);
	return result;
}
