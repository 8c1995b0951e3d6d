/* SPDX-License-Identifier: Apache-2.0 */
/* routes_bakes.c - bakes.*: what was baked, what it wrote, and how it is stopped. */
#include "api/daemon.h"
#include "api/log_stream.h"
#include "api/routes.h"
#include "bake/status_push.h"

static int bakes_need_in(const struct call *call, struct meta *meta, struct bakes_record *out,
			 struct err *err)
{
	struct str id;
	int found;

	if (json_need_string(call->args, "", "id", &id, err) < 0)
		return -1;
	found = bakes_find(meta, id, out, err);
	if (found == 0)
		return err_set(err, ERR_NOT_FOUND, "there is no bake \"%.*s\"",
			       (int)(id.len < 80 ? id.len : 80), id.ptr);
	return found < 0 ? -1 : 0;
}

static int bakes_need(const struct call *call, struct bakes_record *out, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;

	if (meta_begin(call->daemon->store, META_READ, &meta, err) < 0)
		return -1;
	return bakes_need_in(call, meta, out, err);
}

/* Where its image goes, as long as the version's status tells of that. */
static int bakes_add_pushes(struct meta *meta, const struct bakes_record *record, json_t *bake,
			    struct err *err)
{
	AUTO(json) json_t *status = NULL;
	AUTO(json) json_t *pushes = NULL;
	int found = status_find(meta, str_of(record->agent_id), record->version, &status, err);

	if (found != 1)
		return found;
	pushes = status_push_of_bake(status, record->id, &record->image);
	if (json_array_size(pushes) > 0)
		(void)json_object_set(bake, "pushes", pushes);
	return 0;
}

static int bakes_get(struct call *call, struct err *err)
{
	auto_bakes_record struct bakes_record record = {0};
	AUTO(meta) struct meta *meta = NULL;

	if (meta_begin(call->daemon->store, META_READ, &meta, err) < 0 ||
	    bakes_need_in(call, meta, &record, err) < 0)
		return -1;
	call->result = bakes_format(&record);
	return bakes_add_pushes(meta, &record, call->result, err);
}

struct bakes_page {
	size_t limit;
	json_t *items; /* owned */
	char last[ID_TEXT_MAX];
};

/* 1 the page is full, and there is more. */
static int bakes_add_item(void *ctx, const struct bakes_record *record, struct err *err)
{
	struct bakes_page *page = ctx;

	(void)err;
	if (json_array_size(page->items) == page->limit)
		return 1;
	memcpy(page->last, record->id, sizeof(page->last));
	(void)json_array_append_new(page->items, bakes_format(record));
	return 0;
}

/* The agent whose bakes are wanted; "" for everybody's. */
static int bakes_read_agent(const struct call *call, struct meta *meta,
			    char out[static ID_TEXT_MAX], struct err *err)
{
	struct str name;
	struct agent agent = {.id = ""};
	int given = json_get_string(call->args, "", "agentId", &name, err);

	if (given < 0 || (given == 1 && agent_need(meta, name, &agent, err) < 0))
		return -1;
	memcpy(out, agent.id, sizeof(agent.id));
	return 0;
}

/* A page's cursor is the id of its last bake. */
static int bakes_list(struct call *call, struct err *err)
{
	static const char expected[] = "the `next` of an earlier page";
	AUTO(meta) struct meta *meta = NULL;
	AUTO(json) json_t *items = json_array();
	struct bakes_page got = {.items = items};
	char agent_id[ID_TEXT_MAX];
	struct page page;
	int more;

	if (page_parse(call->args, &page, err) < 0)
		return -1;
	if (page.cursor.len > 0 && !ulid_is_id(STR("bak_"), page.cursor)) {
		(void)err_wrong(err, expected, "expected %s", expected);
		return err_at(err, "cursor", NULL);
	}
	got.limit = page.limit;
	if (meta_begin(call->daemon->store, META_READ, &meta, err) < 0 ||
	    bakes_read_agent(call, meta, agent_id, err) < 0)
		return -1;
	more = bakes_each(meta, str_of(agent_id), page.cursor, bakes_add_item, &got, err);
	if (more < 0)
		return -1;
	call->result = json_pack("{s:O, s:s?}", "items", items, "next", more ? got.last : NULL);
	return 0;
}

static int bakes_logs(struct call *call, struct err *err)
{
	static const char expected[] = "a step's number, from 1";
	auto_bakes_record struct bakes_record record = {0};
	struct log_stream_options options = {.store = call->daemon->store, .record = &record};
	int64_t step = 0;
	int given = json_get_int(call->args, "", "step", &step, err);

	if (given == 1 && step < 1) {
		(void)err_wrong(err, expected, "expected %s", expected);
		return err_at(err, "step", NULL);
	}
	if (given < 0 || json_get_bool(call->args, "", "follow", &options.follow, err) < 0 ||
	    bakes_need(call, &record, err) < 0)
		return -1;
	options.step = (size_t)step;
	http_add_header(call->response, "Content-Type", STR("text/plain; charset=utf-8"));
	http_add_header(call->response, "Cache-Control", STR("no-cache"));
	call->response->stream = log_stream_new(&options);
	return 0;
}

/* One that runs says so until it has stopped. */
static int bakes_cancel(struct call *call, struct err *err)
{
	struct str id;

	if (json_need_string(call->args, "", "id", &id, err) < 0 ||
	    queue_cancel(call->daemon->plane->queue, id, err) < 0)
		return -1;
	return bakes_get(call, err);
}

static const struct route_param logs_params[] = {
	{"id", ROUTE_STRING, true},
	{"step", ROUTE_INT, false},
	{"follow", ROUTE_BOOL, false},
};

static const struct route table[] = {
	{.name = "bakes.get",
	 .level = TOKEN_READ,
	 .kind = ROUTE_SLOW,
	 .params = route_id,
	 .param_count = 1,
	 .run = bakes_get},
	{.name = "bakes.list",
	 .level = TOKEN_READ,
	 .kind = ROUTE_SLOW,
	 .params = route_agent_page,
	 .param_count = 3,
	 .run = bakes_list},
	{.name = "bakes.logs",
	 .level = TOKEN_READ,
	 .kind = ROUTE_SLOW,
	 .params = logs_params,
	 .param_count = 3,
	 .run = bakes_logs},
	{.name = "bakes.cancel",
	 .level = TOKEN_OPERATE,
	 .kind = ROUTE_WRITE,
	 .params = route_id,
	 .param_count = 1,
	 .run = bakes_cancel},
};

const struct routes routes_bakes = {table, sizeof(table) / sizeof(table[0])};
