/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token.h - tokens: who may ask the daemon for what.
 *
 * A token is "hth_" and 43 characters of base64url, 32 random bytes; it is
 * shown once, when it is made, and only its SHA-256 is kept. Its scopes are
 * "admin", "operate" or "read", each of which includes the next, and "pull",
 * "push" and "delete" with or without ":GLOB" of repositories.
 *
 * Table `tokens`: the SHA-256 in hex -> {v, id, name, scopes, atMs}. Even if
 * the look-up's timing gave a key away bit by bit, that would be a hash, and no
 * token.
 */
#pragma once

#include "layers/base/clock.h"
#include "layers/base/secret.h"
#include "layers/base/ulid.h"
#include "layers/digest.h"
#include "layers/meta.h"

#define TOKEN_SECRET_BYTES ((size_t)32)
#define TOKEN_LENGTH (sizeof("hth_") - 1 + 43)
#define TOKEN_ID_MAX ID_TEXT_MAX
#define TOKEN_NAME_MAX ((size_t)100)
#define TOKEN_SCOPES_MAX ((size_t)32)
#define TOKEN_SCOPE_MAX ((size_t)256)
#define TOKENS_MAX ((size_t)10000)

/* What a method asks for; a higher one includes the lower. */
enum token_level { TOKEN_NOTHING, TOKEN_READ, TOKEN_OPERATE, TOKEN_ADMIN };

struct token {
	char id[TOKEN_ID_MAX]; /* "tok_..." */
	enum token_level level;
	int64_t at_ms;
	json_t *record; /* owned: name and scopes */
};

#define TOKEN_INIT ((struct token){.at_ms = 0})

/* "read", as errors and listings have it. */
const char *token_level_name(enum token_level level);

/*
 * Make a token in this transaction. scopes are the user's words, an array of
 * strings: ERR_INVALID where one is no scope; ERR_LIMIT where there are TOKENS_MAX
 * already. *secret is the token to show.
 */
int token_create(struct meta *meta, struct str name, const json_t *scopes, struct secret *secret,
		 struct token *out, struct err *err) MUST_CHECK;

/* 1 it is a token, 0 it is none, -1. */
int token_find(struct meta *meta, struct str secret, struct token *out, struct err *err) MUST_CHECK;

/* The same by its key in the table: the hex of its SHA-256. */
int token_find_key(struct meta *meta, struct str key, struct token *out, struct err *err)
	MUST_CHECK;

/* Whether a text has a token's form. */
bool token_is_secret(struct str text);
void token_make_key(struct str secret, char hex[static DIGEST_HEX_MAX]);

/* Newest first; fn may not write. */
typedef int token_each_fn(void *ctx, const struct token *token, struct err *err);
int token_each(struct meta *meta, token_each_fn *fn, void *ctx, struct err *err) MUST_CHECK;

/* ERR_NOT_FOUND where there is none of that id. */
int token_revoke(struct meta *meta, struct str id, struct err *err) MUST_CHECK;

/* For listings: {id, name, scopes, createdAt}. */
json_t *token_describe(const struct token *token);

void token_done(struct token *token);
static inline void auto_token_release(struct token *slot)
{
	token_done(slot);
}
#define auto_token AUTO(token)
