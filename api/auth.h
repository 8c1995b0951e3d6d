/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auth.h - who sent a request.
 *
 * "Authorization: Bearer hth_..." names a token (token.h). A verified token is
 * remembered by its hash until anything is committed to the store. So a revoked
 * one is refused at once, whichever process revoked it, and a request on a
 * quiet store costs one hash and no transaction.
 *
 * Threads: an auth is shared by all.
 */
#pragma once

#include "api/scopes.h"
#include "api/token.h"

#define AUTH_BASIC_MAX ((size_t)512) /* a user's name and a token, in base64 */

struct auth;

struct identity {
	char token_id[TOKEN_ID_MAX];
	enum token_level level;
};

struct auth *auth_new(struct store *store);
void auth_free(struct auth *auth);

/*
 * The token of an Authorization field (NULL for none): ERR_UNAUTHORIZED where
 * there is none in it, or none that is known.
 */
int auth_check(struct auth *auth, const char *authorization, struct identity *out, struct err *err)
	MUST_CHECK;

/* Who asks under /v2/. */
struct visitor {
	struct identity who;   /* an empty token_id: nobody is known */
	struct scopes *scopes; /* a reference, or NULL: what its level allows, and no more */
	bool narrowed;         /* by an access token (access_token.h), to what that asked for: */
	struct scopes *asked;  /* a reference, or NULL for nothing */
	int64_t until_ms;      /* of an access token */
};

/*
 * The same for clients of a registry: a token comes as the password of any user
 * (Basic), too, and may be an access token. Without any, and with an empty name
 * and password, it is nobody.
 */
int auth_check_visitor(struct auth *auth, const char *authorization, struct visitor *out,
		       struct err *err) MUST_CHECK;

/*
 * Whose an access token is to be: the key (token.h) of the token that such a field
 * shows, "" where it shows none, or of this one. ERR_UNAUTHORIZED where it is
 * unknown, or an access token itself.
 */
int auth_find_key(struct auth *auth, const char *authorization, char out[static DIGEST_HEX_MAX],
		  struct err *err) MUST_CHECK;
int auth_check_key(struct auth *auth, struct str secret, char out[static DIGEST_HEX_MAX],
		   struct err *err) MUST_CHECK;

static inline void auto_visitor_release(struct visitor *slot)
{
	scopes_unref(slot->scopes);
	scopes_unref(slot->asked);
	*slot = (struct visitor){.until_ms = 0};
}
#define auto_visitor AUTO(visitor)

/* "Bearer TOKEN", in any case and with any blanks. False for anything else. */
bool auth_parse(struct str field, struct str *out_token);

DEFINE_AUTO(auth, struct auth *, auth_free);
