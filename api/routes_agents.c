/* SPDX-License-Identifier: Apache-2.0 */
/*
 * routes_agents.c - agents.*: specs become versions, and versions images.
 *
 * agents.imageStatus is what pollers ask: it is one look-up, and never builds.
 */
#include "api/daemon.h"
#include "api/routes.h"

#include <inttypes.h>

#define AGENTS_WAIT_MAX_S 60

/* An optional version: 0 where it is not given, which is the latest. */
static int agents_read_version(const struct call *call, int64_t *out, struct err *err)
{
	static const char expected[] = "a version, from 1";
	int found;

	*out = 0;
	found = json_get_int(call->args, "", "version", out, err);
	if (found == 1 && *out < 1) {
		(void)err_wrong(err, expected, "expected %s", expected);
		return err_at(err, "version", NULL);
	}
	return found < 0 ? -1 : 0;
}

/* The status of a version that was there before. */
static int agents_find_status(const struct call *call, const char *id, json_t **out,
			      struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	AUTO(json) json_t *status = NULL;
	int found;

	if (meta_begin(call->daemon->store, META_READ, &meta, err) < 0)
		return -1;
	found = status_find(meta, str_of(id), 0, &status, err);
	if (found == 0)
		return err_set(err, ERR_CORRUPT, "agent %s has no status", id);
	if (found < 0)
		return -1;
	*out = json_incref(json_object_get(status, "status"));
	return 0;
}

static int agents_sync(struct call *call, struct err *err)
{
	auto_agent_synced struct agent_synced synced = {0};
	struct plane_version taken = {.plane = call->daemon->plane};
	struct agent_sync sync = {
		.text = call->request->body,
		.id = STR(""),
		.now_ms = clock_now_ms(),
		.appended = plane_take_version,
		.ctx = &taken,
	};
	json_t *status = NULL;

	if (json_get_string(call->args, "", "id", &sync.id, err) < 0 ||
	    agent_sync(call->daemon->store, &sync, &synced, err) < 0 ||
	    (!synced.appended && agents_find_status(call, synced.agent.id, &status, err) < 0))
		return -1;
	if (synced.appended)
		status = json_string(taken.has_image ? "baking" : "none");
	call->result =
		json_pack("{s:s, s:s, s:I, s:b, s:o, s:O}", "id", synced.agent.id, "slug",
			  synced.agent.slug, "version", (json_int_t)synced.agent.latest, "appended",
			  synced.appended, "status", status, "warnings", synced.warnings);
	return 0;
}

static int agents_get(struct call *call, struct err *err)
{
	auto_agent_version struct agent_version version = {0};
	AUTO(meta) struct meta *meta = NULL;
	struct agent agent;
	struct str name;
	int64_t number;

	if (json_need_string(call->args, "", "id", &name, err) < 0 ||
	    agents_read_version(call, &number, err) < 0 ||
	    meta_begin(call->daemon->store, META_READ, &meta, err) < 0 ||
	    agent_need(meta, name, &agent, err) < 0 ||
	    agent_need_version(meta, &agent, number, &version, err) < 0)
		return -1;
	call->result = agent_format(&agent, &version);
	return 0;
}

static int agents_versions(struct call *call, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	struct agent agent;
	struct page page;
	struct str name;

	if (json_need_string(call->args, "", "id", &name, err) < 0 ||
	    page_parse(call->args, &page, err) < 0 ||
	    meta_begin(call->daemon->store, META_READ, &meta, err) < 0 ||
	    agent_need(meta, name, &agent, err) < 0)
		return -1;
	return agent_list_versions(meta, &agent, &page, &call->result, err);
}

/* The agent's id by id or slug; whether an id exists is seen when its status is read. */
static int agents_find_id(const struct call *call, struct meta *meta, char out[static ID_TEXT_MAX],
			  struct err *err)
{
	struct str name;
	int found;

	if (json_need_string(call->args, "", "id", &name, err) < 0)
		return -1;
	found = agent_find_id(meta, name, out, err);
	if (found == 0)
		return err_set(err, ERR_NOT_FOUND, "there is no agent \"%.*s\"",
			       (int)(name.len < 80 ? name.len : 80), name.ptr);
	return found < 0 ? -1 : 0;
}

/* The same, in a snapshot that ends with it: for what changes the agent. */
static int agents_read_id(const struct call *call, char out[static ID_TEXT_MAX], struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;

	if (meta_begin(call->daemon->store, META_READ, &meta, err) < 0)
		return -1;
	return agents_find_id(call, meta, out, err);
}

static int agents_need_status(const struct call *call, struct meta *meta, const char *id,
			      int64_t version, struct buf *out, char etag[static STATUS_ETAG_MAX],
			      struct err *err)
{
	int found =
		queue_status(call->daemon->plane->queue, meta, str_of(id), version, out, etag, err);

	if (found != 0)
		return found < 0 ? -1 : 0;
	if (version > 0)
		return err_set(err, ERR_NOT_FOUND, "agent %s has no version %" PRId64, id, version);
	return err_set(err, ERR_NOT_FOUND, "there is no agent %s", id);
}

/* Each agent's image status with it, as agents.imageStatus has it, all of one moment. */
static int agents_add_statuses(struct call *call, struct meta *meta, struct err *err)
{
	json_t *items = json_object_get(call->result, "items");
	json_t *item;
	size_t i;

	json_array_foreach(items, i, item)
	{
		auto_buf struct buf body = BUF_INIT(STATUS_BODY_MAX);
		char etag[STATUS_ETAG_MAX];
		json_t *status;

		if (agents_need_status(call, meta, json_string_value(json_object_get(item, "id")),
				       0, &body, etag, err) < 0 ||
		    json_parse(buf_str(&body), STATUS_BODY_MAX, &status, err) < 0)
			return -1;
		json_set(item, "imageStatus", status);
	}
	return 0;
}

static int agents_list(struct call *call, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	struct page page;
	bool status = false;

	if (page_parse(call->args, &page, err) < 0 ||
	    json_get_bool(call->args, "", "imageStatus", &status, err) < 0 ||
	    meta_begin(call->daemon->store, META_READ, &meta, err) < 0 ||
	    agent_list(meta, &page, &call->result, err) < 0)
		return -1;
	return status ? agents_add_statuses(call, meta, err) : 0;
}

/* How long the answer may be put off, in seconds. */
static int agents_read_wait(const struct call *call, int64_t *out, struct err *err)
{
	static const char expected[] = "0 to 60 seconds"; /* AGENTS_WAIT_MAX_S */

	*out = 0;
	if (json_get_int(call->args, "", "wait", out, err) < 0)
		return -1;
	if (*out >= 0 && *out <= AGENTS_WAIT_MAX_S)
		return 0;
	(void)err_wrong(err, expected, "expected %s", expected);
	return err_at(err, "wait", NULL);
}

static int agents_image_status(struct call *call, struct err *err)
{
	auto_buf struct buf body = BUF_INIT(STATUS_BODY_MAX);
	AUTO(meta) struct meta *meta = NULL;
	char id[ID_TEXT_MAX];
	char etag[STATUS_ETAG_MAX];
	char quoted[HTTP_ETAG_MAX];
	struct http_wait wait = {0};
	int64_t version;
	int64_t wait_s;

	if (agents_read_version(call, &version, err) < 0 ||
	    agents_read_wait(call, &wait_s, err) < 0 ||
	    meta_begin(call->daemon->store, META_READ, &meta, err) < 0 ||
	    agents_find_id(call, meta, id, err) < 0 ||
	    agents_need_status(call, meta, id, version, &body, etag, err) < 0)
		return -1;
	if (wait_s > 0) {
		route_set_deadline(call, wait_s * 1000);
		wait = (struct http_wait){http_topic(str_of(id)), call->until_ms};
	}
	route_answer_tagged(call, buf_str(&body), http_etag(str_of(etag), quoted),
			    wait_s > 0 ? &wait : NULL);
	return 0;
}

/* How many steps the image of the latest version has, which a rebake is of. */
static int agents_count_steps(const struct call *call, const char *id, int64_t *out,
			      struct err *err)
{
	auto_agent_version struct agent_version version = {0};
	AUTO(meta) struct meta *meta = NULL;
	struct agent agent;
	const json_t *sandbox;

	if (meta_begin(call->daemon->store, META_READ, &meta, err) < 0 ||
	    agent_need(meta, str_of(id), &agent, err) < 0 ||
	    agent_need_version(meta, &agent, 0, &version, err) < 0)
		return -1;
	sandbox = json_object_get(version.spec, "sandbox");
	*out = (int64_t)json_array_size(
		json_object_get(json_object_get(sandbox, "image"), "steps"));
	return 0;
}

/* 0 where it is not given. */
static int agents_read_step(const struct call *call, const char *id, int64_t *out, struct err *err)
{
	static const char expected[] = "the number of one of its steps, from 1";
	int64_t most;
	int given;

	*out = 0;
	given = json_get_int(call->args, "", "fromStep", out, err);
	if (given != 1)
		return given;
	if (agents_count_steps(call, id, &most, err) < 0)
		return -1;
	if (*out >= 1 && *out <= most)
		return 0;
	(void)err_wrong(err, expected, "expected %s; there are %d", expected, (int)most);
	return err_at(err, "fromStep", NULL);
}

static int agents_rebake(struct call *call, struct err *err)
{
	struct queue_ticket ticket;
	char id[ID_TEXT_MAX];
	int64_t from_step;

	if (agents_read_id(call, id, err) < 0 || agents_read_step(call, id, &from_step, err) < 0 ||
	    queue_rebake(call->daemon->plane->queue, str_of(id), (size_t)from_step, &ticket, err) <
		    0)
		return -1;
	call->result = json_pack("{s:s, s:b}", "bakeId", ticket.bake_id, "joined", ticket.joined);
	return 0;
}

/* It answers as agents.imageStatus does. */
static int agents_rollback(struct call *call, struct err *err)
{
	auto_buf struct buf body = BUF_INIT(STATUS_BODY_MAX);
	AUTO(meta) struct meta *meta = NULL;
	char id[ID_TEXT_MAX];
	char etag[STATUS_ETAG_MAX];
	struct digest image;

	if (agents_read_id(call, id, err) < 0 ||
	    queue_rollback(call->daemon->plane->queue, str_of(id), &image, err) < 0 ||
	    meta_begin(call->daemon->store, META_READ, &meta, err) < 0 ||
	    agents_need_status(call, meta, id, 0, &body, etag, err) < 0)
		return -1;
	http_set_body(call->response, "application/json", buf_str(&body));
	return 0;
}

static const struct route_param sync_params[] = {
	{"id", ROUTE_STRING, false},
};

static const struct route_param get_params[] = {
	{"id", ROUTE_STRING, true},
	{"version", ROUTE_INT, false},
	{"wait", ROUTE_INT, false}, /* agents.imageStatus alone has this one */
};

static const struct route_param rebake_params[] = {
	{"id", ROUTE_STRING, true},
	{"fromStep", ROUTE_INT, false},
};

static const struct route_param list_params[] = {
	{"limit", ROUTE_INT, false},
	{"cursor", ROUTE_STRING, false},
	{"imageStatus", ROUTE_BOOL, false},
};

static const struct route_param versions_params[] = {
	{"limit", ROUTE_INT, false},
	{"cursor", ROUTE_STRING, false},
	{"id", ROUTE_STRING, true},
};

static const struct route table[] = {
	{.name = "agents.imageStatus",
	 .level = TOKEN_READ,
	 .kind = ROUTE_READ,
	 .params = get_params,
	 .param_count = 3,
	 .run = agents_image_status},
	{.name = "agents.get",
	 .level = TOKEN_READ,
	 .kind = ROUTE_SLOW,
	 .params = get_params,
	 .param_count = 2,
	 .run = agents_get},
	{.name = "agents.list",
	 .level = TOKEN_READ,
	 .kind = ROUTE_SLOW,
	 .params = list_params,
	 .param_count = 3,
	 .run = agents_list},
	{.name = "agents.versions",
	 .level = TOKEN_READ,
	 .kind = ROUTE_SLOW,
	 .params = versions_params,
	 .param_count = 3,
	 .run = agents_versions},
	{.name = "agents.sync",
	 .level = TOKEN_OPERATE,
	 .kind = ROUTE_WRITE,
	 .params = sync_params,
	 .param_count = 1,
	 .body_max = AGENT_SPEC_MAX,
	 .whole = true,
	 .run = agents_sync},
	{.name = "agents.rebake",
	 .level = TOKEN_OPERATE,
	 .kind = ROUTE_WRITE,
	 .params = rebake_params,
	 .param_count = 2,
	 .run = agents_rebake},
	{.name = "agents.rollback",
	 .level = TOKEN_OPERATE,
	 .kind = ROUTE_WRITE,
	 .params = route_id,
	 .param_count = 1,
	 .run = agents_rollback},
};

const struct routes routes_agents = {table, sizeof(table) / sizeof(table[0])};
