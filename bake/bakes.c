/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bakes.c - three tables that agree:
 *
 *	bakes         bake's id                      what clients see, v, cancelling
 *	bakes.open    the same                       v: it is still to be done
 *	bakes.agents  agent's id, "/", bake's id     v, version, rebake; open: true while it is
 */
#include "bake/bakes.h"

#include "layers/base/clock.h"

#include <stdio.h>

#define BAKES "bakes"
#define BAKES_OPEN "bakes.open"
#define BAKES_AGENTS "bakes.agents"

static const char *const bakes_states[] = {
	[BAKES_QUEUED] = "queued",       [BAKES_RUNNING] = "running",
	[BAKES_WAITING] = "waiting",     [BAKES_READY] = "ready",
	[BAKES_UNCHANGED] = "unchanged", [BAKES_FAILED] = "failed",
	[BAKES_CANCELLED] = "cancelled",
};

#define BAKES_STATES (sizeof(bakes_states) / sizeof(bakes_states[0]))

const char *bakes_state_name(enum bakes_state state)
{
	return bakes_states[state];
}

bool bakes_is_open(enum bakes_state state)
{
	return state == BAKES_QUEUED || state == BAKES_RUNNING || state == BAKES_WAITING;
}

struct bakes_agent_key {
	char text[2 * ID_TEXT_MAX];
};

static struct str bakes_agent_key(struct str agent_id, struct str id, struct bakes_agent_key *key)
{
	(void)snprintf(key->text, sizeof(key->text), STR_FMT "/" STR_FMT, STR_ARG(agent_id),
		       STR_ARG(id));
	return str_of(key->text);
}

/* Set a member where it applies; else remove it. */
static void bakes_set_if(json_t *document, const char *name, bool is, json_t *value)
{
	if (is) {
		json_set(document, name, value);
	} else {
		json_decref(value);
		(void)json_object_del(document, name);
	}
}

static void bakes_set_time(json_t *document, const char *name, int64_t ms)
{
	char text[CLOCK_TEXT_MAX];

	bakes_set_if(document, name, ms > 0, json_string(clock_format(ms, text)));
}

static void bakes_set_digest(json_t *document, const char *name, const struct digest *digest)
{
	static const struct digest none;
	char text[DIGEST_TEXT_MAX];

	bakes_set_if(document, name, !digest_equal(digest, &none),
		     json_string(digest_format(digest, text)));
}

static void bakes_set_number(json_t *document, const char *name, uint64_t number)
{
	bakes_set_if(document, name, number > 0, json_integer((json_int_t)number));
}

/* In an order that is good to read. */
static void bakes_set_members(const struct bakes_record *record, json_t *document)
{
	bool ended = record->steps > 0;

	json_set_text(document, "id", record->id);
	json_set_text(document, "agentId", record->agent_id);
	json_set_text(document, "slug", record->slug);
	json_set_int(document, "version", record->version);
	json_set(document, "base", json_from_str(record->base_name));
	json_set_bool(document, "rebake", record->rebake);
	bakes_set_number(document, "fromStep", record->from_step);
	json_set_text(document, "state", bakes_state_name(record->state));
	bakes_set_number(document, "attempt", (uint64_t)record->attempt);
	bakes_set_time(document, "createdAt", record->created_ms);
	bakes_set_time(document, "startedAt", record->started_ms);
	bakes_set_time(document, "finishedAt", record->finished_ms);
	bakes_set_time(document, "retryAt", record->retry_ms);
	bakes_set_digest(document, "digest", &record->image);
	bakes_set_number(document, "sizeBytes", record->size);
	bakes_set_digest(document, "baseDigest", &record->base);
	bakes_set_number(document, "steps", record->steps);
	bakes_set_if(document, "cachedSteps", ended,
		     json_integer((json_int_t)record->cached_steps));
	bakes_set_if(document, "error", record->error != NULL, json_incref(record->error));
}

json_t *bakes_format(const struct bakes_record *record)
{
	json_t *document = json_object();

	bakes_set_members(record, document);
	return document;
}

static int bakes_parse_state(const json_t *document, enum bakes_state *out, struct err *err)
{
	struct str name;

	if (json_need_string(document, "", "state", &name, err) < 0)
		return -1;
	for (size_t i = 0; i < BAKES_STATES; i++) {
		if (str_equal(name, str_of(bakes_states[i]))) {
			*out = (enum bakes_state)i;
			return 0;
		}
	}
	return err_set(err, ERR_CORRUPT, "an unknown state " STR_FMT, STR_ARG(name));
}

static int bakes_parse_text(const json_t *document, const char *name, char *out, size_t max,
			    struct err *err)
{
	struct str text;

	if (json_need_string(document, "", name, &text, err) < 0)
		return -1;
	if (text.len >= max)
		return err_set(err, ERR_CORRUPT, "%s is too long", name);
	memcpy(out, text.ptr, text.len);
	out[text.len] = '\0';
	return 0;
}

static int bakes_parse_time(const json_t *document, const char *name, int64_t *out, struct err *err)
{
	struct str text;
	int found = json_get_string(document, "", name, &text, err);

	return found == 1 ? clock_parse(text, out, err) : found;
}

static int bakes_parse_digest(const json_t *document, const char *name, struct digest *out,
			      struct err *err)
{
	struct str text;
	int found = json_get_string(document, "", name, &text, err);

	return found == 1 ? digest_parse(text, out, err) : found;
}

static int bakes_parse_size(const json_t *document, const char *name, uint64_t *out,
			    struct err *err)
{
	int64_t number = 0;

	if (json_get_int(document, "", name, &number, err) < 0)
		return -1;
	*out = (uint64_t)number;
	return 0;
}

static int bakes_parse_identity(const json_t *document, struct bakes_record *out, struct err *err)
{
	uint64_t from_step = 0;

	if (bakes_parse_text(document, "id", out->id, sizeof(out->id), err) < 0 ||
	    bakes_parse_text(document, "agentId", out->agent_id, sizeof(out->agent_id), err) < 0 ||
	    bakes_parse_text(document, "slug", out->slug, sizeof(out->slug), err) < 0 ||
	    json_need_int(document, "", "version", &out->version, err) < 0 ||
	    json_get_string(document, "", "base", &out->base_name, err) < 0 ||
	    json_get_bool(document, "", "rebake", &out->rebake, err) < 0 ||
	    bakes_parse_size(document, "fromStep", &from_step, err) < 0)
		return -1;
	out->from_step = (size_t)from_step;
	return 0;
}

static int bakes_parse_course(const json_t *document, struct bakes_record *out, struct err *err)
{
	if (bakes_parse_state(document, &out->state, err) < 0 ||
	    json_get_bool(document, "", "cancelling", &out->cancelling, err) < 0 ||
	    json_get_int(document, "", "attempt", &out->attempt, err) < 0 ||
	    bakes_parse_time(document, "createdAt", &out->created_ms, err) < 0 ||
	    bakes_parse_time(document, "startedAt", &out->started_ms, err) < 0 ||
	    bakes_parse_time(document, "finishedAt", &out->finished_ms, err) < 0 ||
	    bakes_parse_time(document, "retryAt", &out->retry_ms, err) < 0)
		return -1;
	return 0;
}

static int bakes_parse_result(const json_t *document, struct bakes_record *out, struct err *err)
{
	uint64_t steps = 0;
	uint64_t cached = 0;

	if (bakes_parse_digest(document, "digest", &out->image, err) < 0 ||
	    bakes_parse_digest(document, "baseDigest", &out->base, err) < 0 ||
	    bakes_parse_size(document, "sizeBytes", &out->size, err) < 0 ||
	    bakes_parse_size(document, "steps", &steps, err) < 0 ||
	    bakes_parse_size(document, "cachedSteps", &cached, err) < 0)
		return -1;
	out->steps = (size_t)steps;
	out->cached_steps = (size_t)cached;
	out->error = json_incref(json_object_get(document, "error"));
	return 0;
}

static int bakes_parse(struct str key, const json_t *document, struct bakes_record *out,
		       struct err *err)
{
	auto_bakes_record struct bakes_record record = {.document = json_deep_copy(document),
							.base_name = STR("")};

	if (bakes_parse_identity(record.document, &record, err) < 0 ||
	    bakes_parse_course(record.document, &record, err) < 0 ||
	    bakes_parse_result(record.document, &record, err) < 0)
		return err_ctx(err, "record of bake " STR_FMT, STR_ARG(key));
	*out = record;
	record = (struct bakes_record){0};
	return 0;
}

void bakes_record_done(struct bakes_record *record)
{
	json_decref(record->document);
	json_decref(record->error);
	*record = (struct bakes_record){0};
}

static int bakes_put_open(struct meta *meta, const struct bakes_record *record, struct err *err)
{
	AUTO(json) json_t *entry = json_pack("{s:i}", "v", 1);

	if (!bakes_is_open(record->state))
		return meta_del(meta, BAKES_OPEN, str_of(record->id), err) < 0 ? -1 : 0;
	return meta_put(meta, BAKES_OPEN, str_of(record->id), entry, err);
}

static int bakes_put_agent(struct meta *meta, const struct bakes_record *record, struct err *err)
{
	AUTO(json)
	json_t *entry = json_pack("{s:i, s:I, s:b}", "v", 1, "version", (json_int_t)record->version,
				  "rebake", record->rebake);
	struct bakes_agent_key key;

	bakes_set_if(entry, "open", bakes_is_open(record->state), json_true());
	return meta_put(meta, BAKES_AGENTS,
			bakes_agent_key(str_of(record->agent_id), str_of(record->id), &key), entry,
			err);
}

int bakes_put(struct meta *meta, const struct bakes_record *record, struct err *err)
{
	AUTO(json)
	json_t *document = record->document ? json_deep_copy(record->document) : json_object();

	json_set_int(document, "v", 1);
	bakes_set_members(record, document);
	bakes_set_if(document, "cancelling", record->cancelling, json_true());
	if (meta_put(meta, BAKES, str_of(record->id), document, err) < 0 ||
	    bakes_put_open(meta, record, err) < 0)
		return -1;
	return bakes_put_agent(meta, record, err);
}

int bakes_add(struct meta *meta, struct bakes_record *record, struct err *err)
{
	if (meta_new_id(meta, BAKES, STR("bak_"), record->created_ms, record->id, err) < 0)
		return -1;
	return bakes_put(meta, record, err);
}

int bakes_find(struct meta *meta, struct str id, struct bakes_record *out, struct err *err)
{
	AUTO(json) json_t *document = NULL;
	int found = id.len < ID_TEXT_MAX ? meta_get(meta, BAKES, id, &document, err) : 0;

	if (found == 1 && bakes_parse(id, document, out, err) < 0)
		return -1;
	return found;
}

struct bakes_walk {
	struct meta *meta;
	bakes_each_fn *fn;
	void *ctx;
};

static int bakes_visit(void *ctx, struct str key, const json_t *document, struct err *err)
{
	const struct bakes_walk *walk = ctx;
	auto_bakes_record struct bakes_record record = {0};

	if (bakes_parse(key, document, &record, err) < 0)
		return -1;
	return walk->fn(walk->ctx, &record, err);
}

/* What another table's key names. */
static int bakes_visit_id(const struct bakes_walk *walk, struct str id, struct err *err)
{
	auto_bakes_record struct bakes_record record = {0};
	int found = bakes_find(walk->meta, id, &record, err);

	if (found == 0)
		return err_set(err, ERR_CORRUPT, "bake " STR_FMT " has no record", STR_ARG(id));
	return found < 0 ? -1 : walk->fn(walk->ctx, &record, err);
}

static int bakes_visit_open(void *ctx, struct str key, const json_t *entry, struct err *err)
{
	(void)entry;
	return bakes_visit_id(ctx, key, err);
}

static int bakes_visit_agent(void *ctx, struct str key, const json_t *entry, struct err *err)
{
	struct str id = key;
	struct str agent_id;

	(void)entry;
	(void)str_cut(&id, '/', &agent_id);
	return bakes_visit_id(ctx, id, err);
}

int bakes_each(struct meta *meta, struct str agent_id, struct str before, bakes_each_fn *fn,
	       void *ctx, struct err *err)
{
	struct bakes_walk walk = {meta, fn, ctx};
	struct bakes_agent_key from;
	struct bakes_agent_key prefix;

	if (agent_id.len >= ID_TEXT_MAX || before.len >= ID_TEXT_MAX)
		return 0; /* no id: nothing has it */
	if (agent_id.len == 0)
		return meta_each_before(meta, BAKES, STR(""), before, bakes_visit, &walk, err);
	return meta_each_before(meta, BAKES_AGENTS, bakes_agent_key(agent_id, STR(""), &prefix),
				before.len > 0 ? bakes_agent_key(agent_id, before, &from) : STR(""),
				bakes_visit_agent, &walk, err);
}

int bakes_each_open(struct meta *meta, struct str after, bakes_each_fn *fn, void *ctx,
		    struct err *err)
{
	struct bakes_walk walk = {meta, fn, ctx};

	return meta_each_after(meta, BAKES_OPEN, STR(""), after, bakes_visit_open, &walk, err);
}

struct bakes_search {
	int64_t version;
	bool rebake;
	char id[ID_TEXT_MAX];
};

/* 1 at the one that is looked for. */
static int bakes_match(void *ctx, struct str key, const json_t *entry, struct err *err)
{
	struct bakes_search *search = ctx;
	bool rebake = json_is_true(json_object_get(entry, "rebake"));
	int64_t version = json_integer_value(json_object_get(entry, "version"));
	struct str id = key;
	struct str agent_id;

	(void)err;
	if (!json_is_true(json_object_get(entry, "open")) || rebake != search->rebake ||
	    version != search->version)
		return 0;
	(void)str_cut(&id, '/', &agent_id);
	(void)snprintf(search->id, sizeof(search->id), STR_FMT, STR_ARG(id));
	return 1;
}

int bakes_find_open(struct meta *meta, struct str agent_id, int64_t version, bool rebake,
		    struct bakes_record *out, struct err *err)
{
	struct bakes_search search = {.version = version, .rebake = rebake};
	struct bakes_agent_key prefix;
	int found =
		meta_each_before(meta, BAKES_AGENTS, bakes_agent_key(agent_id, STR(""), &prefix),
				 STR(""), bakes_match, &search, err);

	return found == 1 ? bakes_find(meta, str_of(search.id), out, err) : found;
}

struct bakes_aging {
	struct bakes_ids *ids;
	size_t seen;
};

/* 1 when there are as many as go at once. */
static int bakes_judge_age(void *ctx, struct str key, const json_t *entry, struct err *err)
{
	struct bakes_aging *aging = ctx;
	struct bakes_ids *ids = aging->ids;
	struct str id = key;
	struct str agent_id;

	(void)err;
	if (++aging->seen <= BAKES_KEPT || json_is_true(json_object_get(entry, "open")))
		return 0;
	(void)str_cut(&id, '/', &agent_id);
	(void)snprintf(ids->at[ids->count++], ID_TEXT_MAX, STR_FMT, STR_ARG(id));
	return ids->count == BAKES_OLD_MAX;
}

int bakes_find_old(struct meta *meta, struct str agent_id, struct bakes_ids *out, struct err *err)
{
	struct bakes_aging aging = {.ids = out};
	struct bakes_agent_key prefix;

	out->count = 0;
	return meta_each_before(meta, BAKES_AGENTS, bakes_agent_key(agent_id, STR(""), &prefix),
				STR(""), bakes_judge_age, &aging, err) < 0
		       ? -1
		       : 0;
}

int bakes_remove(struct meta *meta, struct str agent_id, struct str id, struct err *err)
{
	struct bakes_agent_key key;

	if (meta_del(meta, BAKES_AGENTS, bakes_agent_key(agent_id, id, &key), err) < 0 ||
	    meta_del(meta, BAKES_OPEN, id, err) < 0)
		return -1;
	return meta_del(meta, BAKES, id, err) < 0 ? -1 : 0;
}
