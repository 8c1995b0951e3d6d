/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.c - table `journal`: a big-endian id -> v, atMs, type; agentId,
 * version, bakeId, sessionId, rootId, sandboxId where the event is about one;
 * data.
 */
#include "layers/journal.h"

#include "layers/base/clock.h"
#include "layers/store_priv.h"

#include <assert.h>
#include <endian.h>
#include <inttypes.h>

#define JOURNAL "journal"

_Static_assert(JOURNAL_LISTENERS_MAX == STORE_LISTENERS_MAX, "a store keeps what may listen");

struct journal_key {
	uint64_t big_endian;
};

static struct str journal_key(uint64_t id, struct journal_key *key)
{
	key->big_endian = htobe64(id);
	return (struct str){(const char *)&key->big_endian, sizeof(key->big_endian)};
}

static int journal_parse_key(struct str text, uint64_t *out, struct err *err)
{
	uint64_t big_endian;

	if (text.len != sizeof(big_endian))
		return err_set(err, ERR_CORRUPT, JOURNAL ": a key of %zu bytes", text.len);
	memcpy(&big_endian, text.ptr, sizeof(big_endian));
	*out = be64toh(big_endian);
	return 0;
}

/* What an event may be about, by the name that it has in records and for clients. */
static const struct journal_about {
	const char *name;
	size_t offset;
} journal_abouts[] = {
	{"agentId", offsetof(struct event, agent_id)},
	{"bakeId", offsetof(struct event, bake_id)},
	{"sessionId", offsetof(struct event, session_id)},
	{"rootId", offsetof(struct event, root_id)},
	{"sandboxId", offsetof(struct event, sandbox_id)},
};

#define JOURNAL_ABOUTS (sizeof(journal_abouts) / sizeof(journal_abouts[0]))

static struct str *journal_member(struct event *event, size_t which)
{
	return (struct str *)((char *)event + journal_abouts[which].offset);
}

/* What a record and a client's event have in common. */
static void journal_set_members(const struct event *event, json_t *record)
{
	struct event copy = *event;

	json_set(record, "type", json_from_str(event->type));
	for (size_t i = 0; i < JOURNAL_ABOUTS; i++) {
		struct str value = *journal_member(&copy, i);

		if (value.len > 0)
			json_set(record, journal_abouts[i].name, json_from_str(value));
	}
	if (event->version > 0)
		json_set_int(record, "version", event->version);
	json_set(record, "data", event->data ? json_deep_copy(event->data) : json_object());
}

json_t *journal_format(const struct event *event)
{
	json_t *out = json_object();
	char text[CLOCK_TEXT_MAX];

	json_set(out, "id", json_sprintf("%" PRIu64, event->id));
	json_set_text(out, "at", clock_format(event->at_ms, text));
	journal_set_members(event, out);
	return out;
}

static int journal_check_data(const struct event *event, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(JOURNAL_DATA_MAX);

	if (!event->data)
		return 0;
	assert(json_is_object(event->data));
	if (json_format(event->data, &text, err) < 0)
		return err_ctx(err, "event " STR_FMT, STR_ARG(event->type));
	return 0;
}

static void journal_tell(void *ctx)
{
	struct store *store = ctx;
	struct store_listener listeners[STORE_LISTENERS_MAX];
	size_t count;

	lock_take(&store->listen_lock);
	count = store->listener_count;
	memcpy(listeners, store->listeners, count * sizeof(listeners[0]));
	lock_drop(&store->listen_lock);
	for (size_t i = 0; i < count; i++)
		listeners[i].fn(listeners[i].ctx);
}

void journal_listen(struct store *store, journal_listen_fn *fn, void *ctx)
{
	lock_take(&store->listen_lock);
	assert(store->listener_count < STORE_LISTENERS_MAX);
	store->listeners[store->listener_count++] = (struct store_listener){fn, ctx};
	lock_drop(&store->listen_lock);
}

int journal_append(struct meta *meta, const struct event *event, uint64_t *out_id, struct err *err)
{
	AUTO(json) json_t *record = json_object();
	struct journal_key key;
	uint64_t oldest;
	uint64_t newest = 0;

	assert(event->type.len > 0);
	if (journal_check_data(event, err) < 0 || journal_ends(meta, &oldest, &newest, err) < 0)
		return -1;
	json_set_int(record, "v", 1);
	json_set_int(record, "atMs", event->at_ms);
	journal_set_members(event, record);
	if (meta_put(meta, JOURNAL, journal_key(newest + 1, &key), record, err) < 0)
		return -1;
	meta_on_commit(meta, journal_tell, meta_store(meta));
	*out_id = newest + 1;
	return 0;
}

static int journal_parse(struct str key, const json_t *record, struct event *out, struct err *err)
{
	struct event event = {0};

	if (journal_parse_key(key, &event.id, err) < 0 ||
	    json_need_int(record, "", "atMs", &event.at_ms, err) < 0 ||
	    json_need_string(record, "", "type", &event.type, err) < 0 ||
	    json_get_int(record, "", "version", &event.version, err) < 0)
		return -1;
	for (size_t i = 0; i < JOURNAL_ABOUTS; i++) {
		*journal_member(&event, i) = STR("");
		if (json_get_string(record, "", journal_abouts[i].name, journal_member(&event, i),
				    err) < 0)
			return -1;
	}
	event.data = json_object_get(record, "data");
	*out = event;
	return 0;
}

struct journal_walk {
	journal_read_fn *fn;
	void *ctx;
};

static int journal_visit(void *ctx, struct str key, const json_t *record, struct err *err)
{
	const struct journal_walk *walk = ctx;
	struct event event;

	if (journal_parse(key, record, &event, err) < 0) {
		err->kind = ERR_CORRUPT;
		return err_ctx(err, "an event's record");
	}
	return walk->fn(walk->ctx, &event, err);
}

int journal_read(struct meta *meta, uint64_t after, journal_read_fn *fn, void *ctx, struct err *err)
{
	struct journal_walk walk = {fn, ctx};
	struct journal_key key;

	return meta_each_after(meta, JOURNAL, STR(""), journal_key(after, &key), journal_visit,
			       &walk, err);
}

int journal_ends(struct meta *meta, uint64_t *out_oldest, uint64_t *out_newest, struct err *err)
{
	struct str key;
	int found = meta_find_end(meta, JOURNAL, STR(""), META_FIRST, &key, err);

	if (found != 1)
		return found;
	if (journal_parse_key(key, out_oldest, err) < 0 ||
	    meta_find_end(meta, JOURNAL, STR(""), META_LAST, &key, err) < 0 ||
	    journal_parse_key(key, out_newest, err) < 0)
		return -1;
	return 1;
}

struct journal_cut {
	struct meta *meta;
	uint64_t first; /* the first id that stays by policy->keep; at most the newest */
	uint64_t newest;
	int64_t since_ms; /* events of this time or later stay */
	int removed;
};

/* 1 this one stays, and so do all that follow; 2 enough for one transaction. */
static int journal_trim_one(void *ctx, const struct event *event, struct err *err)
{
	struct journal_cut *cut = ctx;
	struct journal_key key;

	if (event->id == cut->newest || (event->id >= cut->first && event->at_ms >= cut->since_ms))
		return 1;
	if (cut->removed++ == JOURNAL_TRIM_MAX)
		return 2;
	return meta_del(cut->meta, JOURNAL, journal_key(event->id, &key), err) < 0 ? -1 : 0;
}

int journal_trim(struct meta *meta, const struct journal_policy *policy, int64_t now_ms,
		 struct err *err)
{
	struct journal_cut cut = {.meta = meta, .since_ms = INT64_MIN};
	uint64_t oldest;
	int found = journal_ends(meta, &oldest, &cut.newest, err);

	if (found != 1)
		return found;
	if (policy->keep > 0 && policy->keep < cut.newest)
		cut.first = cut.newest - policy->keep + 1;
	if (policy->keep_ms > 0)
		cut.since_ms = now_ms - policy->keep_ms;
	found = journal_read(meta, 0, journal_trim_one, &cut, err);
	return found < 0 ? -1 : found == 2;
}
