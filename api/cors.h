/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cors.h - which pages of other origins may call the daemon and read its
 * answers: those that the configuration lists as `origins`, none by default.
 *
 * A browser first asks whether a page may send a token (the Fetch standard's
 * preflight), and sends none with that. Other clients are served whatever their
 * Origin is: the token protects the answers.
 */
#pragma once

#include "api/config.h"
#include "layers/base/http.h"

/* "https://HOST[:PORT]", as browsers write it. */
bool cors_is_origin(struct str text);

/* Whether the request is a browser's preflight. */
bool cors_is_preflight(const struct http_request *request);

/* ERR_DENIED for a page of an origin that is not listed. */
int cors_answer_preflight(const struct config *config, const struct http_request *request,
			  struct http_response *out, struct err *err) MUST_CHECK;

/* Add the headers that let the page read this answer, if its origin is listed. */
void cors_add(const struct config *config, const struct http_request *request,
	      struct http_response *out);
