/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.c - three tables; v is 1.
 *
 *	table            key                       members
 *	sessions         id                        agentId, version, rootId, parentId,
 *	                                           subagent, createdMs, endedMs
 *	sessions.agents  agent's id, id            none
 *	sessions.open    root's id, id             none; it goes when the session ends
 */
#include "sandbox/session.h"

#include "layers/base/clock.h"
#include "layers/journal.h"

#include <stdio.h>

#define SESSIONS "sessions"
#define SESSIONS_BY_AGENT "sessions.agents"
#define SESSIONS_OPEN "sessions.open"

struct session_pair {
	char text[2 * ID_TEXT_MAX];
};

static struct str session_pair(const char *first, const char *second, struct session_pair *pair)
{
	(void)snprintf(pair->text, sizeof(pair->text), "%s%s", first, second);
	return str_of(pair->text);
}

/* The members that are texts, and where they go. */
static const struct session_text {
	const char *name;
	size_t offset;
	size_t max; /* with the NUL */
} session_texts[] = {
	{"agentId", offsetof(struct session, agent_id), ID_TEXT_MAX},
	{"rootId", offsetof(struct session, root_id), ID_TEXT_MAX},
	{"parentId", offsetof(struct session, parent_id), ID_TEXT_MAX},
	{"subagent", offsetof(struct session, subagent), SESSION_NAME_MAX + 1},
};

#define SESSION_TEXTS (sizeof(session_texts) / sizeof(session_texts[0]))

static int session_get_text(const json_t *record, const struct session_text *text,
			    struct session *out, struct err *err)
{
	struct str value = STR("");

	if (json_get_string(record, "", text->name, &value, err) < 0)
		return -1;
	if (value.len >= text->max)
		return err_set(err, ERR_CORRUPT, "%s is too long", text->name);
	memcpy((char *)out + text->offset, value.ptr, value.len);
	return 0;
}

static int session_parse_members(struct str id, const json_t *record, struct session *out,
				 struct err *err)
{
	if (id.len >= ID_TEXT_MAX)
		return err_set(err, ERR_CORRUPT, "its id is too long");
	memcpy(out->id, id.ptr, id.len);
	for (size_t i = 0; i < SESSION_TEXTS; i++) {
		if (session_get_text(record, &session_texts[i], out, err) < 0)
			return -1;
	}
	if (json_need_int(record, "", "version", &out->version, err) < 0 ||
	    json_need_int(record, "", "createdMs", &out->created_ms, err) < 0 ||
	    json_get_int(record, "", "endedMs", &out->ended_ms, err) < 0)
		return -1;
	return 0;
}

static int session_parse(struct str id, const json_t *record, struct session *out, struct err *err)
{
	struct session session = {.version = 0};

	if (session_parse_members(id, record, &session, err) < 0) {
		err->kind = ERR_CORRUPT;
		return err_ctx(err, "record of session " STR_FMT, STR_ARG(id));
	}
	*out = session;
	return 0;
}

static void session_set_texts(json_t *record, const struct session *session)
{
	for (size_t i = 0; i < SESSION_TEXTS; i++) {
		const char *value = (const char *)session + session_texts[i].offset;

		if (*value)
			json_set(record, session_texts[i].name, json_from_str(str_of(value)));
	}
	json_set_int(record, "version", session->version);
}

static int session_put(struct meta *meta, const struct session *session, struct err *err)
{
	AUTO(json) json_t *record = NULL;
	int found = meta_get(meta, SESSIONS, str_of(session->id), &record, err);

	if (found < 0)
		return -1;
	if (found == 0)
		record = json_pack("{s:i}", "v", 1);
	session_set_texts(record, session);
	json_set_int(record, "createdMs", session->created_ms);
	if (session->ended_ms > 0)
		json_set_int(record, "endedMs", session->ended_ms);
	return meta_put(meta, SESSIONS, str_of(session->id), record, err);
}

static int session_put_mark(struct meta *meta, const char *table, const char *first,
			    const struct session *session, struct err *err)
{
	AUTO(json) json_t *record = json_pack("{s:i}", "v", 1);
	struct session_pair pair;

	return meta_put(meta, table, session_pair(first, session->id, &pair), record, err);
}

static int session_tell(struct meta *meta, const struct session *session, const char *type,
			json_t *data, struct err *err)
{
	AUTO(json) json_t *owned = data;
	struct event event = {
		.at_ms = session->ended_ms ? session->ended_ms : session->created_ms,
		.type = str_of(type),
		.agent_id = str_of(session->agent_id),
		.version = session->version,
		.session_id = str_of(session->id),
		.root_id = str_of(session->root_id),
		.data = owned,
	};
	uint64_t id;

	if (!owned)
		abort();
	return journal_append(meta, &event, &id, err);
}

int session_need(struct meta *meta, struct str id, struct session *out, struct err *err)
{
	AUTO(json) json_t *record = NULL;
	int found = ulid_is_id(STR(SESSION_PREFIX), id) ? meta_get(meta, SESSIONS, id, &record, err)
							: 0;

	if (found == 0)
		return err_set(err, ERR_NOT_FOUND, "there is no session \"%.*s\"",
			       (int)(id.len < 80 ? id.len : 80), id.ptr);
	return found < 0 ? -1 : session_parse(id, record, out, err);
}

struct session_count {
	size_t n;
};

static int session_count_one(void *ctx, struct str key, const json_t *record, struct err *err)
{
	struct session_count *count = ctx;

	(void)key;
	(void)record;
	(void)err;
	return ++count->n == SESSION_TREE_MAX;
}

/* What a child has from its parent; it is open, and so is its root. */
static int session_inherit(struct meta *meta, const struct session_request *request,
			   struct session *out, struct err *err)
{
	struct session parent;
	struct session_count count = {0};
	int full;

	if (session_need(meta, request->parent_id, &parent, err) < 0)
		return err_at(err, "parent", NULL);
	if (parent.ended_ms > 0)
		return err_set(err, ERR_GONE, "the session %s has ended", parent.id);
	if (request->agent_id.len > 0 && !str_equal(request->agent_id, str_of(parent.agent_id))) {
		(void)err_wrong(err, "the parent's agent", "expected the parent's agent, %s",
				parent.agent_id);
		return err_at(err, "agent", NULL);
	}
	if (request->version != 0 && request->version != parent.version) {
		(void)err_wrong(err, "the parent's version", "expected the parent's version");
		return err_at(err, "version", NULL);
	}
	full = meta_each(meta, SESSIONS_OPEN, str_of(parent.root_id), session_count_one, &count,
			 err);
	if (full != 0)
		return full < 0 ? -1
				: err_set(err, ERR_LIMIT, "more than %d open sessions in one tree",
					  SESSION_TREE_MAX);
	memcpy(out->agent_id, parent.agent_id, sizeof(out->agent_id));
	memcpy(out->root_id, parent.root_id, sizeof(out->root_id));
	memcpy(out->parent_id, parent.id, sizeof(out->parent_id));
	out->version = parent.version;
	return 0;
}

static int session_begin(struct meta *meta, const struct session_request *request,
			 struct session *out, struct err *err)
{
	if (request->subagent.len > SESSION_NAME_MAX) {
		(void)err_wrong(err, "a sub-agent's name", "expected a sub-agent's name");
		return err_at(err, "subagent", NULL);
	}
	memcpy(out->subagent, request->subagent.ptr, request->subagent.len);
	out->created_ms = request->now_ms;
	if (meta_new_id(meta, SESSIONS, STR(SESSION_PREFIX), request->now_ms, out->id, err) < 0)
		return -1;
	if (request->parent_id.len > 0)
		return session_inherit(meta, request, out, err);
	memcpy(out->agent_id, request->agent_id.ptr, request->agent_id.len);
	memcpy(out->root_id, out->id, sizeof(out->root_id));
	out->version = request->version;
	return 0;
}

int session_create(struct meta *meta, const struct session_request *request, struct session *out,
		   struct err *err)
{
	struct session session = {.version = 0};

	if (session_begin(meta, request, &session, err) < 0 ||
	    session_put(meta, &session, err) < 0 ||
	    session_put_mark(meta, SESSIONS_BY_AGENT, session.agent_id, &session, err) < 0 ||
	    session_put_mark(meta, SESSIONS_OPEN, session.root_id, &session, err) < 0 ||
	    session_tell(meta, &session, "session.created",
			 json_pack("{s:s*, s:s*}", "parentId",
				   session.parent_id[0] ? session.parent_id : NULL, "subagent",
				   session.subagent[0] ? session.subagent : NULL),
			 err) < 0)
		return -1;
	*out = session;
	return 0;
}

struct session_walk {
	struct meta *meta;
	session_each_fn *fn;
	void *ctx;
};

static int session_visit(void *ctx, struct str key, const json_t *record, struct err *err)
{
	const struct session_walk *walk = ctx;
	struct session session;

	(void)record;
	if (key.len < ID_TEXT_MAX - 1)
		return err_set(err, ERR_CORRUPT, SESSIONS_OPEN ": a key of %zu bytes", key.len);
	if (session_need(walk->meta, str_skip(key, ID_TEXT_MAX - 1), &session, err) < 0)
		return -1;
	return walk->fn(walk->ctx, &session, err);
}

int session_each_open(struct meta *meta, struct str root_id, session_each_fn *fn, void *ctx,
		      struct err *err)
{
	struct session_walk walk = {meta, fn, ctx};

	return meta_each(meta, SESSIONS_OPEN, root_id, session_visit, &walk, err);
}

/* Parents come before their children, so one walk finds all that are below. */
struct session_ending {
	struct meta *meta;
	int64_t now_ms;
	char (*ended)[ID_TEXT_MAX]; /* owned; rising */
	size_t count;
};

static int session_compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

static int session_end_one(struct session_ending *ending, const struct session *open,
			   const char *reason, struct err *err)
{
	struct session session = *open;
	struct session_pair pair;

	memcpy(ending->ended[ending->count++], session.id, ID_TEXT_MAX);
	session.ended_ms = ending->now_ms;
	if (session_put(ending->meta, &session, err) < 0 ||
	    meta_del(ending->meta, SESSIONS_OPEN, session_pair(session.root_id, session.id, &pair),
		     err) < 0)
		return -1;
	return session_tell(ending->meta, &session, "session.ended",
			    json_pack("{s:s}", "reason", reason), err);
}

static int session_end_below(void *ctx, const struct session *session, struct err *err)
{
	struct session_ending *ending = ctx;

	if (!bsearch(session->parent_id, ending->ended, ending->count, ID_TEXT_MAX,
		     session_compare))
		return 0;
	return session_end_one(ending, session, "parentEnded", err);
}

int session_end(struct meta *meta, struct str id, int64_t now_ms, struct session *out,
		struct err *err)
{
	auto_free char(*ended)[ID_TEXT_MAX] = calloc(SESSION_TREE_MAX + 1, ID_TEXT_MAX);
	struct session_ending ending = {.meta = meta, .now_ms = now_ms, .ended = ended};
	struct session session;

	if (!ended)
		abort();
	if (session_need(meta, id, &session, err) < 0)
		return -1;
	if (session.ended_ms == 0 &&
	    (session_end_one(&ending, &session, "ended", err) < 0 ||
	     session_each_open(meta, str_of(session.root_id), session_end_below, &ending, err) < 0))
		return -1;
	return session_need(meta, id, out, err) < 0 ? -1 : ending.count > 0;
}

static int session_list_item(void *ctx, struct str key, const json_t *record, json_t **out,
			     struct err *err)
{
	struct session session;

	(void)ctx;
	if (session_parse(key, record, &session, err) < 0)
		return -1;
	*out = session_format(&session);
	return 0;
}

static int session_list_marked(void *ctx, struct str key, const json_t *record, json_t **out,
			       struct err *err)
{
	struct session session;

	(void)record;
	if (session_need(ctx, str_skip(key, ID_TEXT_MAX - 1), &session, err) < 0)
		return -1;
	*out = session_format(&session);
	return 0;
}

int session_list(struct meta *meta, struct str agent_id, const struct page *page, json_t **out,
		 struct err *err)
{
	struct page_source source = {
		.table = SESSIONS, .prefix = STR(""), .item = session_list_item};

	if (agent_id.len > 0)
		source = (struct page_source){.table = SESSIONS_BY_AGENT,
					      .prefix = agent_id,
					      .item = session_list_marked,
					      .ctx = meta};
	return page_read(meta, &source, page, out, err);
}

json_t *session_format(const struct session *session)
{
	json_t *out = json_object();
	char text[CLOCK_TEXT_MAX];

	json_set_text(out, "id", session->id);
	session_set_texts(out, session);
	json_set_text(out, "state", session->ended_ms ? "ended" : "open");
	json_set_text(out, "createdAt", clock_format(session->created_ms, text));
	if (session->ended_ms > 0)
		json_set_text(out, "endedAt", clock_format(session->ended_ms, text));
	return out;
}
