/* SPDX-License-Identifier: Apache-2.0 */
/* routes_tokens.c - tokens.create, tokens.list, tokens.revoke: for who is admin. */
#include "api/daemon.h"
#include "api/routes.h"

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

static int tokens_add(void *ctx, const struct token *token, struct err *err)
{
	(void)err;
	(void)json_array_append_new(ctx, token_describe(token));
	return 0;
}

static int tokens_list(struct call *call, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	AUTO(json) json_t *items = json_array();

	if (meta_begin(call->daemon->store, META_READ, &meta, err) < 0 ||
	    token_each(meta, tokens_add, items, err) < 0)
		return -1;
	call->result = json_pack("{s:O, s:n}", "items", items, "next");
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

static const struct route_param revoke_params[] = {
	{"id", ROUTE_STRING, true},
};

static const struct route table[] = {
	{.name = "tokens.create",
	 .level = TOKEN_ADMIN,
	 .kind = ROUTE_WRITE,
	 .params = create_params,
	 .param_count = 2,
	 .run = tokens_create},
	{.name = "tokens.list", .level = TOKEN_ADMIN, .kind = ROUTE_SLOW, .run = tokens_list},
	{.name = "tokens.revoke",
	 .level = TOKEN_ADMIN,
	 .kind = ROUTE_WRITE,
	 .params = revoke_params,
	 .param_count = 1,
	 .run = tokens_revoke},
};

const struct routes routes_tokens = {table, sizeof(table) / sizeof(table[0])};
