/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status.c - a record is the answer with two members in front of it, whose
 * length is always the same:
 *
 *	{"v":1,"etag":"<32 hex digits>",     the answer without its first brace
 *
 * Keys: the agent's id; and the agent's id, "/" and the version.
 */
#include "bake/status.h"

#include "layers/base/clock.h"
#include "layers/digest_json.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#define STATUSES "statuses"
#define STATUS_HEAD "{\"v\":1,\"etag\":\""
#define STATUS_HEAD_LEN (sizeof(STATUS_HEAD) - 1)
#define STATUS_ETAG_LEN (STATUS_ETAG_MAX - 1)
#define STATUS_BODY_AT (STATUS_HEAD_LEN + STATUS_ETAG_LEN + 1) /* of what was its brace */

/* In an order that is good to read; others follow. */
static const char *const status_members[] = {
	"agentId",   "slug",       "version", "status",  "phase", "step",   "digest",   "sizeBytes",
	"startedAt", "finishedAt", "attempt", "retryAt", "error", "rebake", "previous", "pushes",
};

#define STATUS_MEMBERS (sizeof(status_members) / sizeof(status_members[0]))

struct status_key {
	char text[ID_TEXT_MAX + sizeof("/-9223372036854775808")];
};

static struct str status_key(struct str agent_id, int64_t version, struct status_key *key)
{
	size_t len = agent_id.len < ID_TEXT_MAX ? agent_id.len : ID_TEXT_MAX;

	if (version == 0)
		return (struct str){agent_id.ptr, len};
	(void)snprintf(key->text, sizeof(key->text), "%.*s/%" PRId64, (int)len, agent_id.ptr,
		       version);
	return str_of(key->text);
}

static void status_set_time(json_t *object, const char *name, int64_t ms)
{
	char text[CLOCK_TEXT_MAX];

	json_set_text(object, name, clock_format(ms, text));
}

static void status_clear(json_t *object, const char *const *names)
{
	for (; *names; names++)
		(void)json_object_del(object, *names);
}

json_t *status_new(struct str agent_id, struct str slug, int64_t version)
{
	json_t *status = json_object();

	json_set(status, "agentId", json_from_str(agent_id));
	json_set(status, "slug", json_from_str(slug));
	json_set_int(status, "version", version);
	json_set_text(status, "status", "none");
	return status;
}

/* Members in their order. Owned. */
static json_t *status_sort(const json_t *status)
{
	json_t *sorted = json_object();
	const char *name;
	json_t *value;

	for (size_t i = 0; i < STATUS_MEMBERS; i++) {
		value = json_object_get(status, status_members[i]);
		if (value)
			json_set(sorted, status_members[i], json_incref(value));
	}
	json_object_foreach((json_t *)drop_const(status), name, value)
	{
		if (!json_object_get(sorted, name))
			json_set(sorted, name, json_incref(value));
	}
	return sorted;
}

int status_render(const json_t *status, struct buf *out, char etag[static STATUS_ETAG_MAX],
		  struct err *err)
{
	AUTO(json) json_t *sorted = status_sort(status);
	auto_free char *text = json_dumps(sorted, JSON_COMPACT);
	char hex[DIGEST_HEX_MAX];
	struct digest digest;

	if (!text)
		abort();
	digest_of(str_of(text), &digest);
	if (buf_add(out, str_of(text), err) < 0)
		return err_ctx(err, "an image's status");
	memcpy(etag, digest_hex(&digest, hex), STATUS_ETAG_LEN);
	etag[STATUS_ETAG_LEN] = '\0';
	return 0;
}

/* Whether there is no later version of the agent. 1, 0, -1. */
static int status_is_latest(struct meta *meta, struct str agent_id, int64_t version,
			    struct err *err)
{
	AUTO(json) json_t *latest = NULL;
	int found = status_find(meta, agent_id, 0, &latest, err);

	return found == 1 ? version >= status_version(latest) : found < 0 ? -1 : 1;
}

int status_put(struct meta *meta, const json_t *status, struct err *err)
{
	auto_buf struct buf body = BUF_INIT(STATUS_BODY_MAX);
	auto_buf struct buf record = BUF_INIT(STATUS_BODY_AT + STATUS_BODY_MAX);
	struct str agent_id = json_str(json_object_get(status, "agentId"));
	int64_t version = status_version(status);
	char etag[STATUS_ETAG_MAX];
	struct status_key key;
	int latest;

	if (status_render(status, &body, etag, err) < 0 ||
	    buf_addf(&record, err, STATUS_HEAD "%s\",", etag) < 0 ||
	    buf_add(&record, str_skip(buf_str(&body), 1), err) < 0)
		return -1;
	latest = status_is_latest(meta, agent_id, version, err);
	if (latest < 0 ||
	    (latest == 1 && meta_put_text(meta, STATUSES, agent_id, buf_str(&record), err) < 0))
		return -1;
	return meta_put_text(meta, STATUSES, status_key(agent_id, version, &key), buf_str(&record),
			     err);
}

int status_read(struct meta *meta, struct str agent_id, int64_t version, struct buf *out,
		char etag[static STATUS_ETAG_MAX], struct err *err)
{
	struct status_key key;
	struct str record;
	int found = meta_view(meta, STATUSES, status_key(agent_id, version, &key), &record, err);

	if (found != 1)
		return found;
	if (record.len <= STATUS_BODY_AT || !str_starts(record, STR(STATUS_HEAD)))
		return err_set(err, ERR_CORRUPT, "the status of " STR_FMT " is damaged",
			       STR_ARG(agent_id));
	if (buf_add(out, STR("{"), err) < 0 ||
	    buf_add(out, str_skip(record, STATUS_BODY_AT + 1), err) < 0)
		return -1;
	memcpy(etag, record.ptr + STATUS_HEAD_LEN, STATUS_ETAG_LEN);
	etag[STATUS_ETAG_LEN] = '\0';
	return 1;
}

int status_find(struct meta *meta, struct str agent_id, int64_t version, json_t **out,
		struct err *err)
{
	static const char *const ours[] = {"v", "etag", NULL};
	struct status_key key;
	int found = meta_get(meta, STATUSES, status_key(agent_id, version, &key), out, err);

	if (found == 1)
		status_clear(*out, ours);
	return found;
}

static void status_set_state(json_t *status, const char *state)
{
	json_set_text(status, "status", state);
}

void status_set_queued(json_t *status)
{
	static const char *const past[] = {"step",    "startedAt", "finishedAt", "attempt",
					   "retryAt", "error",     NULL};

	status_clear(status, past);
	status_set_state(status, "baking");
	json_set_text(status, "phase", "queued");
}

void status_set_running(json_t *status, int64_t attempt, int64_t started_ms)
{
	static const char *const past[] = {"step", "finishedAt", "retryAt", "error", NULL};

	status_clear(status, past);
	status_set_state(status, "baking");
	json_set_text(status, "phase", "pulling");
	json_set_int(status, "attempt", attempt);
	status_set_time(status, "startedAt", started_ms);
}

void status_set_waiting(json_t *status, int64_t retry_ms, json_t *error)
{
	(void)json_object_del(status, "step");
	status_set_state(status, "baking");
	json_set_text(status, "phase", "waiting");
	status_set_time(status, "retryAt", retry_ms);
	json_set(status, "error", json_incref(error));
}

void status_set_failed(json_t *status, json_t *error, int64_t finished_ms)
{
	static const char *const past[] = {"phase", "step", "retryAt", NULL};

	status_clear(status, past);
	status_set_state(status, "failed");
	status_set_time(status, "finishedAt", finished_ms);
	json_set(status, "error", json_incref(error));
}

void status_set_collected(json_t *status, json_t *error, int64_t at_ms)
{
	static const char *const past[] = {"digest", "sizeBytes", "previous", NULL};

	status_clear(status, past);
	status_set_failed(status, error, at_ms);
}

static void status_set_image(json_t *object, const struct status_image *image)
{
	digest_json_set(object, "digest", &image->digest);
	json_set_size(object, "sizeBytes", image->size);
	if (image->started_ms > 0)
		status_set_time(object, "startedAt", image->started_ms);
	status_set_time(object, "finishedAt", image->finished_ms);
}

void status_set_ready(json_t *status, const struct status_image *image)
{
	static const char *const past[] = {"phase", "step", "retryAt", "error", NULL};

	status_clear(status, past);
	status_set_state(status, "ready");
	status_set_image(status, image);
}

void status_set_previous(json_t *status, const struct status_image *image)
{
	json_t *previous = json_object();

	if (image) {
		status_set_image(previous, image);
		json_set(status, "previous", previous);
	} else {
		json_decref(previous);
		(void)json_object_del(status, "previous");
	}
}

void status_set_rebake(json_t *status, const char *bake_id, const char *state, int64_t at_ms,
		       json_t *error)
{
	json_t *rebake = json_object();

	json_set_text(rebake, "bakeId", bake_id);
	json_set_text(rebake, "status", state);
	status_set_time(rebake, "at", at_ms);
	if (error)
		json_set(rebake, "error", json_incref(error));
	json_set(status, "rebake", rebake);
}

void status_set_rebake_attempt(json_t *status, int64_t attempt, int64_t retry_ms)
{
	json_t *rebake = json_object_get(status, "rebake");

	json_set_int(rebake, "attempt", attempt);
	if (retry_ms == 0)
		return;
	json_set_text(rebake, "phase", "waiting");
	status_set_time(rebake, "retryAt", retry_ms);
}

bool status_is_ready(const json_t *status)
{
	const json_t *state = json_object_get(status, "status");

	return json_is_string(state) && strcmp(json_string_value(state), "ready") == 0;
}

/* 0 where it is not told. */
static int64_t status_read_time(const json_t *object, const char *name)
{
	struct str text;
	struct err ignored;
	int64_t ms;

	if (json_get_string(object, "", name, &text, &ignored) != 1 ||
	    clock_parse(text, &ms, &ignored) < 0)
		return 0;
	return ms;
}

static bool status_read_image(const json_t *object, struct status_image *out)
{
	struct str digest;
	struct err ignored;

	if (json_get_string(object, "", "digest", &digest, &ignored) != 1 ||
	    digest_parse(digest, &out->digest, &ignored) < 0)
		return false;
	out->started_ms = status_read_time(object, "startedAt");
	out->finished_ms = status_read_time(object, "finishedAt");
	out->size = (uint64_t)json_integer_value(json_object_get(object, "sizeBytes"));
	return true;
}

bool status_image(const json_t *status, struct status_image *out)
{
	return status_read_image(status, out);
}

bool status_previous(const json_t *status, struct status_image *out)
{
	return status_read_image(json_object_get(status, "previous"), out);
}

struct str status_slug(const json_t *status)
{
	const json_t *slug = json_object_get(status, "slug");

	return json_is_string(slug) ? json_str(slug) : STR("");
}

int64_t status_version(const json_t *status)
{
	return json_integer_value(json_object_get(status, "version"));
}

void status_set_progress(json_t *status, const struct status_progress *progress)
{
	json_t *rebake = json_object_get(status, "rebake");
	json_t *at = status_is_ready(status) && rebake ? rebake : status;
	json_t *step;

	json_set_text(at, "phase", progress->phase);
	if (progress->step == 0) {
		(void)json_object_del(at, "step");
		return;
	}
	step = json_object();
	json_set_size(step, "n", progress->step);
	json_set_size(step, "of", progress->of);
	json_set(step, "text", json_from_str(progress->text));
	json_set_bool(step, "cached", progress->cached);
	json_set(at, "step", step);
}

struct status_walk {
	status_each_fn *fn;
	void *ctx;
};

static int status_visit(void *ctx, struct str key, const json_t *status, struct err *err)
{
	const struct status_walk *walk = ctx;

	if (!memchr(key.ptr, '/', key.len))
		return 0; /* the agent's own entry, a copy of the latest version's */
	return walk->fn(walk->ctx, status, err);
}

int status_each(struct meta *meta, status_each_fn *fn, void *ctx, struct err *err)
{
	struct status_walk walk = {fn, ctx};

	return meta_each(meta, STATUSES, STR(""), status_visit, &walk, err);
}
