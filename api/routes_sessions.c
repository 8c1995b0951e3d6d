/* SPDX-License-Identifier: Apache-2.0 */
/* routes_sessions.c - sessions.*: conversations with agents whose image is there. */
#include "api/daemon.h"
#include "api/image_check.h"
#include "api/routes.h"
#include "sandbox/session.h"

#include <inttypes.h>

struct session_wish {
	struct str agent;
	struct str parent;
	struct str subagent;
	int64_t version; /* 0 for the latest, or with a parent the parent's */
};

static int sessions_read_wish(const struct call *call, struct session_wish *out, struct err *err)
{
	static const char expected[] = "a version, from 1";
	int given;

	*out = (struct session_wish){STR(""), STR(""), STR(""), 0};
	given = json_get_int(call->args, "", "version", &out->version, err);
	if (given == 1 && out->version < 1) {
		(void)err_wrong(err, expected, "expected %s", expected);
		return err_at(err, "version", NULL);
	}
	if (given < 0 || json_need_string(call->args, "", "agent", &out->agent, err) < 0 ||
	    json_get_string(call->args, "", "parent", &out->parent, err) < 0 ||
	    json_get_string(call->args, "", "subagent", &out->subagent, err) < 0)
		return -1;
	if (out->subagent.len == 0 || out->parent.len > 0)
		return 0;
	(void)err_wrong(err, "a session's id", "expected a session's id: a sub-agent has a parent");
	return err_at(err, "parent", NULL);
}

/* A child is of its parent's version. */
static int sessions_find_version(struct meta *meta, const struct session_wish *wish, int64_t latest,
				 int64_t *out, struct err *err)
{
	struct session parent;

	*out = wish->version ? wish->version : latest;
	if (wish->version != 0 || wish->parent.len == 0)
		return 0;
	if (session_need(meta, wish->parent, &parent, err) < 0)
		return err_at(err, "parent", NULL);
	*out = parent.version;
	return 0;
}

static int sessions_check_subagent(struct meta *meta, const struct agent *agent, int64_t number,
				   struct str subagent, struct err *err)
{
	static const char expected[] = "a sub-agent of that version";
	auto_agent_version struct agent_version version = {0};

	if (subagent.len == 0)
		return 0;
	if (agent_need_version(meta, agent, number, &version, err) < 0)
		return -1;
	if (agent_version_has_subagent(&version, subagent))
		return 0;
	(void)err_wrong(err, expected, "expected %s, found \"%.*s\"", expected,
			(int)(subagent.len < 80 ? subagent.len : 80), subagent.ptr);
	return err_at(err, "subagent", NULL);
}

/* That of its agent today, which may be renamed. */
static int sessions_add_slug(struct meta *meta, json_t *session, struct err *err)
{
	struct agent agent;

	if (agent_need(meta, json_str(json_object_get(session, "agentId")), &agent, err) < 0)
		return -1;
	json_set_text(session, "slug", agent.slug);
	return 0;
}

static int sessions_answer(struct call *call, struct meta *meta, const struct session *session,
			   struct err *err)
{
	call->result = session_format(session);
	return sessions_add_slug(meta, call->result, err);
}

static int sessions_create(struct call *call, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	struct session_request request = {.now_ms = clock_now_ms()};
	struct session_wish wish;
	struct session session;
	struct agent agent;

	if (sessions_read_wish(call, &wish, err) < 0 ||
	    meta_begin(call->daemon->store, META_SHARED, &meta, err) < 0 ||
	    agent_need(meta, wish.agent, &agent, err) < 0 ||
	    sessions_find_version(meta, &wish, agent.latest, &request.version, err) < 0)
		return -1;
	request.agent_id = str_of(agent.id);
	request.parent_id = wish.parent;
	request.subagent = wish.subagent;
	if (session_create(meta, &request, &session, err) < 0 ||
	    image_check_ready(call, meta, &agent, session.version, err) < 0 ||
	    sessions_check_subagent(meta, &agent, session.version, wish.subagent, err) < 0 ||
	    sessions_answer(call, meta, &session, err) < 0 ||
	    meta_commit(steal_ptr(&meta), err) < 0)
		return -1;
	return 0;
}

static int sessions_get(struct call *call, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	struct session session;
	struct str id;

	if (json_need_string(call->args, "", "id", &id, err) < 0 ||
	    meta_begin(call->daemon->store, META_READ, &meta, err) < 0 ||
	    session_need(meta, id, &session, err) < 0)
		return -1;
	return sessions_answer(call, meta, &session, err);
}

static int sessions_list(struct call *call, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	struct agent agent = {.id = ""};
	struct page page;
	struct str name;
	json_t *session;
	size_t i;
	int given = json_get_string(call->args, "", "agentId", &name, err);

	if (given < 0 || page_parse(call->args, &page, err) < 0 ||
	    meta_begin(call->daemon->store, META_READ, &meta, err) < 0 ||
	    (given == 1 && agent_need(meta, name, &agent, err) < 0))
		return -1;
	if (session_list(meta, str_of(agent.id), &page, &call->result, err) < 0)
		return -1;
	json_array_foreach(json_object_get(call->result, "items"), i, session)
	{
		if (sessions_add_slug(meta, session, err) < 0)
			return -1;
	}
	return 0;
}

/* Once more changes nothing, and says the same. */
static int sessions_end(struct call *call, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	struct session session;
	struct str id;
	int ended;

	if (json_need_string(call->args, "", "id", &id, err) < 0 ||
	    meta_begin(call->daemon->store, META_SHARED, &meta, err) < 0)
		return -1;
	ended = session_end(meta, id, clock_now_ms(), &session, err);
	if (ended < 0 || sessions_answer(call, meta, &session, err) < 0)
		return -1;
	return ended == 1 ? meta_commit(steal_ptr(&meta), err) : 0;
}

static const struct route_param create_params[] = {
	{"agent", ROUTE_STRING, true},
	{"version", ROUTE_INT, false},
	{"parent", ROUTE_STRING, false},
	{"subagent", ROUTE_STRING, false},
};

static const struct route table[] = {
	{.name = "sessions.create",
	 .level = TOKEN_OPERATE,
	 .kind = ROUTE_WRITE,
	 .params = create_params,
	 .param_count = 4,
	 .run = sessions_create},
	{.name = "sessions.get",
	 .level = TOKEN_READ,
	 .kind = ROUTE_SLOW,
	 .params = route_id,
	 .param_count = 1,
	 .run = sessions_get},
	{.name = "sessions.list",
	 .level = TOKEN_READ,
	 .kind = ROUTE_SLOW,
	 .params = route_agent_page,
	 .param_count = 3,
	 .run = sessions_list},
	{.name = "sessions.end",
	 .level = TOKEN_OPERATE,
	 .kind = ROUTE_WRITE,
	 .params = route_id,
	 .param_count = 1,
	 .run = sessions_end},
};

const struct routes routes_sessions = {table, sizeof(table) / sizeof(table[0])};
