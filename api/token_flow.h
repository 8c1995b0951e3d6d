/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token_flow.h - /v2/token: where clients of the registry go with a challenge
 * (door_v2.h), and come back with an access token (access_token.h).
 *
 *	GET   ?service=&scope=&scope=     a token by Basic or Bearer, or none
 *	POST  grant_type=password&username=&password=&scope=
 *	      grant_type=refresh_token&refresh_token=&scope=
 *
 * A scope is repository:NAME:ACTIONS, or registry:catalog:* for the list of all
 * that the token's owner may pull (kept as list:*); several stand side by side,
 * or with blanks between them. What is asked for and may not be had, or is
 * unknown here, is no error: it is decided when the token is used. Who shows no
 * token is given one that allows what anybody may; so is who shows a wrong one and
 * asks for nothing else. Else a wrong one is 401.
 *
 * Formats: distribution's "Token Authentication Specification" and the OAuth2 one.
 */
#pragma once

#include "api/daemon.h"

#define TOKEN_FLOW_PATH "/v2/token"
#define TOKEN_FLOW_SERVICE "hearth"

/* What the fields called scope ask for, as a token's scopes; the caller's. */
json_t *token_flow_scopes(const struct http_field *fields, size_t count);

/* What a GET and a POST bring. False: *out refuses the method. */
bool token_flow_admit(const struct http_request *request, struct http_terms *terms,
		      struct http_response *out);

/* May block. */
void token_flow_answer(struct daemon *daemon, const struct http_request *request,
		       struct http_response *out);
