/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cors.h - which pages of other origins may ask and read: those that the
 * configuration lists as `origins`, and nobody's by default.
 *
 * A browser asks first whether a page may send a token (the Fetch standard's
 * preflight), and has none to show for that. Whoever is no browser is served
 * whatever the Origin is: what protects answers is the token.
 */
#pragma once

#include "api/config.h"
#include "layers/base/http.h"

/* "https://HOST[:PORT]", as browsers write it. */
bool cors_is_origin(struct str text);

/* Whether a browser asks if it may ask. */
bool cors_is_preflight(const struct http_request *request);

/* ERR_DENIED for a page of an origin that is not listed. */
int cors_answer_preflight(const struct config *config, const struct http_request *request,
			  struct http_response *out, struct err *err) MUST_CHECK;

/* Let the page read this answer, if it may. */
void cors_add(const struct config *config, const struct http_request *request,
	      struct http_response *out);
