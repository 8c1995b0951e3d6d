/* SPDX-License-Identifier: Apache-2.0 */
/*
 * routes_tools.c - tools.call: what hinders a call, since no machine is started
 * for one yet. The answers say whether the spec, this host or hearth is why.
 */
#include "api/daemon.h"
#include "api/image_check.h"
#include "api/routes.h"
#include "sandbox/session.h"
#include "sandbox/tool.h"

#include <inttypes.h>

/* The session is open, and there is a tool of that name. */
static int tools_find_session(const struct call *call, struct meta *meta, struct session *out,
			      struct err *err)
{
	struct str id, tool;

	if (json_need_string(call->args, "", "sessionId", &id, err) < 0 ||
	    json_need_string(call->args, "", "tool", &tool, err) < 0 ||
	    session_need(meta, id, out, err) < 0)
		return -1;
	if (out->ended_ms > 0)
		return err_set(err, ERR_GONE, "session %s has ended: create another", out->id);
	return tool_need(tool, err);
}

/* Why the version's tools cannot be called. Returns -1. */
static int tools_refuse(const struct agent *agent, const struct agent_version *version,
			struct err *err)
{
	const char *provider = agent_version_provider(version);

	if (!provider)
		return err_set(err, ERR_NO_TOOL,
			       "version %" PRId64 " of %s has no tools: its spec has no sandbox",
			       version->number, agent->slug);
	if (!agent_provider_is_here(provider))
		return err_set(err, ERR_NO_PROVIDER,
			       "this host has no machines of %s, the sandbox.provider of version "
			       "%" PRId64 " of %s: leave it out of the spec for ours, and sync",
			       provider, version->number, agent->slug);
	return err_set(err, ERR_UNSUPPORTED,
		       "this version of hearth bakes the images of sandboxes and calls no tools in "
		       "them");
}

static int tools_call(struct call *call, struct err *err)
{
	auto_agent_version struct agent_version version = {0};
	AUTO(meta) struct meta *meta = NULL;
	struct session session;
	struct agent agent;

	if (meta_begin(call->daemon->store, META_READ, &meta, err) < 0 ||
	    tools_find_session(call, meta, &session, err) < 0 ||
	    agent_need(meta, str_of(session.agent_id), &agent, err) < 0 ||
	    image_check_ready(call, meta, &agent, session.version, err) < 0 ||
	    agent_need_version(meta, &agent, session.version, &version, err) < 0)
		return -1;
	return tools_refuse(&agent, &version, err);
}

static const struct route_param call_params[] = {
	{"sessionId", ROUTE_STRING, true},  {"tool", ROUTE_STRING, true},
	{"arguments", ROUTE_OBJECT, false}, {"callId", ROUTE_STRING, false},
	{"timeoutMs", ROUTE_INT, false},
};

static const struct route table[] = {
	{.name = "tools.call",
	 .level = TOKEN_OPERATE,
	 .kind = ROUTE_WRITE,
	 .params = call_params,
	 .param_count = 5,
	 .run = tools_call},
};

const struct routes routes_tools = {table, sizeof(table) / sizeof(table[0])};
