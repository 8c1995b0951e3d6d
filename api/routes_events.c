/* SPDX-License-Identifier: Apache-2.0 */
/* routes_events.c - events.stream: what happens, as it happens. */
#include "api/daemon.h"
#include "api/event_stream.h"
#include "api/routes.h"
#include "layers/journal.h"

/*
 * Where it goes on: 1 behind that event, 0 it is not said, -1. A client that
 * comes back asks for the same address, so its header is the later word.
 */
static int events_read_after(const struct call *call, uint64_t *out, struct err *err)
{
	static const char expected[] = "an event's id";
	const char *header = http_find_header(call->request, "Last-Event-ID");
	struct str text = str_of(header ? header : "");

	if (!header && json_get_string(call->args, "", "after", &text, err) < 0)
		return -1;
	if (text.len == 0)
		return 0;
	if (str_parse_number(text, out))
		return 1;
	(void)err_wrong(err, expected, "expected %s", expected);
	return err_at(err, header ? "Last-Event-ID" : "after", NULL);
}

/* A client that has seen no event begins with the next one. */
static int events_find_begin(const struct call *call, struct meta *meta, uint64_t *out,
			     struct err *err)
{
	uint64_t oldest;
	int given = events_read_after(call, out, err);

	if (given != 0)
		return given < 0 ? -1 : 0;
	*out = 0;
	return journal_ends(meta, &oldest, out, err) < 0 ? -1 : 0;
}

static int events_stream(struct call *call, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	struct event_filter filter = {STR(""), STR(""), STR(""), false};
	struct agent agent = {.id = ""};
	uint64_t after;
	struct str name;
	bool follow = true;
	int of_agent = json_get_string(call->args, "", "agentId", &name, err);

	if (of_agent < 0 || json_get_bool(call->args, "", "follow", &follow, err) < 0 ||
	    json_get_string(call->args, "", "sessionId", &filter.session_id, err) < 0 ||
	    json_get_string(call->args, "", "type", &filter.type, err) < 0 ||
	    meta_begin(call->daemon->store, META_READ, &meta, err) < 0 ||
	    (of_agent == 1 && agent_need(meta, name, &agent, err) < 0) ||
	    events_find_begin(call, meta, &after, err) < 0)
		return -1;
	filter.agent_id = str_of(agent.id);
	filter.ends = !follow;
	http_add_header(call->response, "Content-Type", STR("text/event-stream"));
	http_add_header(call->response, "Cache-Control", STR("no-cache"));
	call->response->stream = event_stream_new(call->daemon->store, after, &filter,
						  http_topic(STR(PLANE_EVENTS)));
	return 0;
}

static const struct route_param stream_params[] = {
	{"after", ROUTE_STRING, false},     {"agentId", ROUTE_STRING, false},
	{"sessionId", ROUTE_STRING, false}, {"type", ROUTE_STRING, false},
	{"follow", ROUTE_BOOL, false},
};

static const struct route table[] = {
	{.name = "events.stream",
	 .level = TOKEN_READ,
	 .kind = ROUTE_SLOW,
	 .params = stream_params,
	 .param_count = 5,
	 .run = events_stream},
};

const struct routes routes_events = {table, sizeof(table) / sizeof(table[0])};
