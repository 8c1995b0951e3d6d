/* SPDX-License-Identifier: Apache-2.0 */
#include "api/token.h"

#include "layers/base/array.h"

#include <stdio.h>
#include <sys/random.h>

#define TOKEN_TABLE "tokens"

static const char *const token_levels[] = {
	[TOKEN_NOTHING] = "",
	[TOKEN_READ] = "read",
	[TOKEN_OPERATE] = "operate",
	[TOKEN_ADMIN] = "admin",
};

const char *token_level_name(enum token_level level)
{
	return token_levels[level];
}

void token_done(struct token *token)
{
	json_decref(token->record);
	*token = TOKEN_INIT;
}

static enum token_level token_scope_level(struct str scope)
{
	for (int level = TOKEN_READ; level <= TOKEN_ADMIN; level++) {
		if (str_equal(scope, str_of(token_levels[level])))
			return (enum token_level)level;
	}
	return TOKEN_NOTHING;
}

/* "pull", or "pull:" and a glob of repositories. */
static bool token_scope_is_repositories(struct str scope)
{
	struct str action;
	struct str rest = scope;

	(void)str_cut(&rest, ':', &action);
	if (!str_equal(action, STR("pull")) && !str_equal(action, STR("push")) &&
	    !str_equal(action, STR("delete")))
		return false;
	for (size_t i = 0; rest.ptr && i < rest.len; i++) {
		if (rest.ptr[i] == '\0' ||
		    !strchr("abcdefghijklmnopqrstuvwxyz0123456789._-/*?", rest.ptr[i]))
			return false;
	}
	return !rest.ptr || rest.len > 0;
}

static int token_check_scopes(const json_t *scopes, struct err *err)
{
	if (json_array_size(scopes) == 0 || json_array_size(scopes) > TOKEN_SCOPES_MAX)
		return err_set(err, ERR_INVALID, "scopes: expected 1 to %zu of them",
			       TOKEN_SCOPES_MAX);
	for (size_t i = 0; i < json_array_size(scopes); i++) {
		const json_t *scope = json_array_get(scopes, i);
		struct str text = json_is_string(scope) ? json_str(scope) : STR("");

		if (text.len <= TOKEN_SCOPE_MAX &&
		    (token_scope_level(text) != TOKEN_NOTHING || token_scope_is_repositories(text)))
			continue;
		return err_set(err, ERR_INVALID,
			       "scopes[%zu]: expected admin, operate, read, or pull, push or "
			       "delete with or without :REPOSITORIES",
			       i);
	}
	return 0;
}

static int token_parse(json_t *record, struct token *out, struct err *err)
{
	json_t *scopes = NULL;
	struct str id = {0};

	if (json_need_string(record, "", "id", &id, err) < 0 ||
	    json_need_array(record, "", "scopes", &scopes, err) < 0 ||
	    json_need_int(record, "", "atMs", &out->at_ms, err) < 0)
		return err_ctx(err, "a token's record");
	(void)snprintf(out->id, sizeof(out->id), STR_FMT, STR_ARG(id));
	out->level = TOKEN_NOTHING;
	for (size_t i = 0; i < json_array_size(scopes); i++) {
		enum token_level level = token_scope_level(json_str(json_array_get(scopes, i)));

		out->level = level > out->level ? level : out->level;
	}
	out->record = json_incref(record);
	return 0;
}

void token_make_key(struct str secret, char hex[static DIGEST_HEX_MAX])
{
	struct digest digest;

	digest_of(secret, &digest);
	(void)digest_hex(&digest, hex);
}

/* "hth_" and the bytes, six bits a character. */
static int token_make_secret(struct secret *out, struct err *err)
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	auto_buf struct buf text = BUF_WIPED(TOKEN_LENGTH + 1);
	unsigned char bytes[TOKEN_SECRET_BYTES + 1] = {0};
	int result;

	if (getrandom(bytes, TOKEN_SECRET_BYTES, 0) != (ssize_t)TOKEN_SECRET_BYTES)
		return err_os(err, errno, "get randomness");
	result = buf_add(&text, STR("hth_"), err);
	for (size_t bit = 0; result == 0 && bit < TOKEN_SECRET_BYTES * 8; bit += 6) {
		unsigned pair = (unsigned)bytes[bit / 8] << 8 | bytes[bit / 8 + 1];

		result = buf_add(&text, (struct str){&alphabet[pair >> (10 - bit % 8) & 63], 1},
				 err);
	}
	explicit_bzero(bytes, sizeof(bytes));
	if (result == 0)
		secret_take(out, &text);
	return result;
}

static json_t *token_record(struct str name, const json_t *scopes)
{
	char ulid[ULID_TEXT_MAX];
	char id[TOKEN_ID_MAX];

	(void)snprintf(id, sizeof(id), "tok_%s", ulid_new(ulid));
	return json_pack("{s:i, s:s, s:s%, s:O, s:I}", "v", 1, "id", id, "name",
			 name.len > 0 ? name.ptr : "", name.len, "scopes", scopes, "atMs",
			 (json_int_t)clock_now_ms());
}

/* 1 that is as many as there may be. */
static int token_count(void *ctx, struct str key, const json_t *value, struct err *err)
{
	size_t *count = ctx;

	(void)key;
	(void)value;
	(void)err;
	return ++*count == TOKENS_MAX;
}

/* More than can be listed could not be revoked, either. */
static int token_check_room(struct meta *meta, struct err *err)
{
	size_t count = 0;
	int full = meta_each(meta, TOKEN_TABLE, STR(""), token_count, &count, err);

	if (full == 1)
		return err_set(err, ERR_LIMIT,
			       "there are %zu tokens, as many as there may be; revoke some first",
			       count);
	return full;
}

int token_create(struct meta *meta, struct str name, const json_t *scopes, struct secret *secret,
		 struct token *out, struct err *err)
{
	AUTO(json) json_t *record = NULL;
	char key[DIGEST_HEX_MAX];

	if (name.len > TOKEN_NAME_MAX)
		return err_set(err, ERR_INVALID, "name: longer than %zu bytes", TOKEN_NAME_MAX);
	if (token_check_scopes(scopes, err) < 0 || token_check_room(meta, err) < 0 ||
	    token_make_secret(secret, err) < 0)
		return -1;
	record = token_record(name, scopes);
	if (!record)
		return err_set(err, ERR_INVALID, "name: expected UTF-8");
	token_make_key(secret_bytes(secret), key);
	if (meta_put(meta, TOKEN_TABLE, str_of(key), record, err) < 0)
		return -1;
	return token_parse(record, out, err);
}

bool token_is_secret(struct str text)
{
	return text.len == TOKEN_LENGTH && str_starts(text, STR("hth_"));
}

int token_find_key(struct meta *meta, struct str key, struct token *out, struct err *err)
{
	AUTO(json) json_t *record = NULL;
	int found = meta_get(meta, TOKEN_TABLE, key, &record, err);

	if (found == 1 && token_parse(record, out, err) < 0)
		return -1;
	return found;
}

int token_find(struct meta *meta, struct str secret, struct token *out, struct err *err)
{
	char key[DIGEST_HEX_MAX];

	if (!token_is_secret(secret))
		return 0;
	token_make_key(secret, key);
	return token_find_key(meta, str_of(key), out, err);
}

struct token_list {
	struct token *at; /* owned */
	size_t count;
};

static void auto_token_list_release(struct token_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		token_done(&list->at[i]);
	free(list->at);
}

static int token_gather(void *ctx, struct str key, const json_t *value, struct err *err)
{
	struct token_list *list = ctx;
	AUTO(json) json_t *record = json_copy(drop_const(value));
	struct token token = TOKEN_INIT;

	(void)key;
	if (list->count == TOKENS_MAX)
		return err_set(err, ERR_LIMIT, "more than %zu tokens", TOKENS_MAX);
	if (token_parse(record, &token, err) < 0)
		return -1;
	list->at = array_grow(list->at, list->count, sizeof(*list->at));
	list->at[list->count++] = token;
	return 0;
}

static int token_newest_first(const void *a, const void *b)
{
	return strcmp(((const struct token *)b)->id, ((const struct token *)a)->id);
}

int token_each(struct meta *meta, token_each_fn *fn, void *ctx, struct err *err)
{
	AUTO(token_list) struct token_list list = {0};
	int result = meta_each(meta, TOKEN_TABLE, STR(""), token_gather, &list, err);

	if (list.count > 0)
		qsort(list.at, list.count, sizeof(*list.at), token_newest_first);
	for (size_t i = 0; result == 0 && i < list.count; i++)
		result = fn(ctx, &list.at[i], err);
	return result;
}

struct token_search {
	struct str id;
	char key[DIGEST_HEX_MAX];
};

static int token_match(void *ctx, struct str key, const json_t *value, struct err *err)
{
	struct token_search *search = ctx;
	struct str id = {0};

	if (json_need_string(value, "", "id", &id, err) < 0)
		return -1;
	if (!str_equal(id, search->id))
		return 0;
	(void)snprintf(search->key, sizeof(search->key), STR_FMT, STR_ARG(key));
	return 1;
}

int token_revoke(struct meta *meta, struct str id, struct err *err)
{
	struct token_search search = {.id = id};
	int found = meta_each(meta, TOKEN_TABLE, STR(""), token_match, &search, err);

	if (found == 0)
		return err_set(err, ERR_NOT_FOUND, "there is no token " STR_FMT, STR_ARG(id));
	if (found < 0)
		return -1;
	return meta_del(meta, TOKEN_TABLE, str_of(search.key), err) < 0 ? -1 : 0;
}

json_t *token_describe(const struct token *token)
{
	char when[CLOCK_TEXT_MAX];

	return json_pack("{s:s, s:O, s:O, s:s}", "id", token->id, "name",
			 json_object_get(token->record, "name"), "scopes",
			 json_object_get(token->record, "scopes"), "createdAt",
			 clock_format(token->at_ms, when));
}
