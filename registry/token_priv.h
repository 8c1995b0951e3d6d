/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token_priv.h - a token, from the service that a challenge names.
 *
 * Formats: distribution's token specification (GET, Basic) and, for an identity
 * token, its OAuth 2 one (POST, grant_type=refresh_token); where that is not
 * known, the first with the token for a password.
 */
#pragma once

#include "registry/retry_priv.h"

#define TOKEN_ANSWER_MAX ((size_t)256 * 1024)

enum token_proof { TOKEN_ANONYMOUS, TOKEN_PASSWORD, TOKEN_IDENTITY };

struct token_question {
	const char *url; /* with service and scope as its query */
	enum token_proof proof;
	const char *user; /* of a password */
	const struct secret *password;
	struct retry retry;
};

/*
 * Ask until an answer comes, as often as other requests are tried. *out_life_ms
 * is what the service says or, if nothing, a minute. ERR_UNAUTHORIZED,
 * ERR_BUSY, ERR_REMOTE, ERR_TIMEOUT, ERR_CANCELLED.
 */
int token_ask(const struct token_question *question, struct http *http, struct secret *out,
	      int64_t *out_life_ms, struct err *err) MUST_CHECK;
