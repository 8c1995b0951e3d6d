/* SPDX-License-Identifier: Apache-2.0 */
/* routes_tokens.c - tokens.create, tokens.list, tokens.revoke: for admins. */
#include "api/daemon.h"
#include "api/routes.h"
#include "layers/page.h"

static int tokens_create(struct call *call, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	auto_token struct token token = TOKEN_INIT;
	auto_secret struct secret secret = {0};
	struct str name = STR("");
	json_t *scopes = NULL;

	if (json_get_string(call->args, "", "name", &name, err) < 0 ||
	    json_need_array(call->args, "", "scopes", &scopes, err) < 0 ||
	    meta_begin(call->daemon->store, META_WRITE, &meta, err) < 0 ||
	    token_create(meta, name, scopes, &secret, &token, err) < 0 ||
	    meta_commit(steal_ptr(&meta), err) < 0)
		return -1;
	call->result = token_describe(&token);
	(void)json_object_set_new(call->result, "token", json_string(secret_reveal(&secret)));
	return 0;
}

struct token_page {
	struct page page;
	json_t *items;
	char last[TOKEN_ID_MAX];
};

/* Ids rise with time, so the cursor is an id. 1 the page is full. */
static int tokens_add(void *ctx, const struct token *token, struct err *err)
{
	struct token_page *list = ctx;

	(void)err;
	if (list->page.cursor.len > 0 && strcmp(token->id, list->page.cursor.ptr) >= 0)
		return 0;
	if (json_array_size(list->items) == list->page.limit)
		return 1;
	(void)json_array_append_new(list->items, token_describe(token));
	memcpy(list->last, token->id, sizeof(list->last));
	return 0;
}

static int tokens_list(struct call *call, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	AUTO(json) json_t *items = json_array();
	struct token_page list = {.items = items};
	int more;

	if (page_parse(call->args, &list.page, err) < 0)
		return -1;
	if (list.page.cursor.len > 0 && !ulid_is_id(STR("tok_"), list.page.cursor)) {
		(void)err_wrong(err, "an earlier page's next", "expected an earlier page's next");
		return err_at(err, "cursor", NULL);
	}
	if (meta_begin(call->daemon->store, META_READ, &meta, err) < 0)
		return -1;
	more = token_each(meta, tokens_add, &list, err);
	if (more < 0)
		return -1;
	call->result = json_pack("{s:O, s:s?}", "items", items, "next", more ? list.last : NULL);
	return 0;
}

static int tokens_revoke(struct call *call, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	struct str id;

	if (json_need_string(call->args, "", "id", &id, err) < 0 ||
	    meta_begin(call->daemon->store, META_WRITE, &meta, err) < 0 ||
	    token_revoke(meta, id, err) < 0 || meta_commit(steal_ptr(&meta), err) < 0)
		return -1;
	call->result = json_pack("{s:b}", "revoked", 1);
	return 0;
}

static const struct route_param create_params[] = {
	{"name", ROUTE_STRING, false},
	{"scopes", ROUTE_ARRAY, true},
};

static const struct route table[] = {
	{.name = "tokens.create",
	 .level = TOKEN_ADMIN,
	 .kind = ROUTE_WRITE,
	 .params = create_params,
	 .param_count = 2,
	 .run = tokens_create},
	{.name = "tokens.list",
	 .level = TOKEN_ADMIN,
	 .kind = ROUTE_SLOW,
	 .params = route_page,
	 .param_count = 2,
	 .run = tokens_list},
	{.name = "tokens.revoke",
	 .level = TOKEN_ADMIN,
	 .kind = ROUTE_WRITE,
	 .params = route_id,
	 .param_count = 1,
	 .run = tokens_revoke},
};

const struct routes routes_tokens = {table, sizeof(table) / sizeof(table[0])};
