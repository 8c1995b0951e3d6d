/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cors.h"

#include <strings.h>

#define CORS_MAX_AGE_S "600" /* for so long a browser need not ask again */

bool cors_is_origin(struct str text)
{
	struct str rest = text;
	struct str host;

	if (str_starts(text, STR("https://")))
		rest = str_skip(text, strlen("https://"));
	else if (str_starts(text, STR("http://")))
		rest = str_skip(text, strlen("http://"));
	if (rest.len == 0 || rest.len == text.len)
		return false;
	host = rest;
	for (size_t i = 0; i < host.len; i++) {
		bool upper = host.ptr[i] >= 'A' && host.ptr[i] <= 'Z';

		if (upper || host.ptr[i] <= ' ' || strchr("/?#@*\x7f", host.ptr[i]))
			return false;
	}
	return host.ptr[0] != ':';
}

/* The page's origin, where it is listed; else NULL. */
static const char *cors_find(const struct config *config, const struct http_request *request)
{
	const char *origin = config->origins.count > 0 ? http_find_header(request, "Origin") : NULL;

	for (size_t i = 0; origin && i < config->origins.count; i++) {
		if (strcmp(config->origins.at[i], origin) == 0)
			return origin;
	}
	return NULL;
}

bool cors_is_preflight(const struct http_request *request)
{
	return request->method == HTTP_OPTIONS && http_find_header(request, "Origin") &&
	       http_find_header(request, "Access-Control-Request-Method");
}

int cors_answer_preflight(const struct config *config, const struct http_request *request,
			  struct http_response *out, struct err *err)
{
	if (!cors_find(config, request))
		return err_set(err, ERR_DENIED,
			       "pages of %.100s may not ask: list it as one of the configuration's "
			       "origins",
			       http_find_header(request, "Origin"));
	out->status = 204;
	http_add_header(out, "Access-Control-Allow-Methods", STR("GET, HEAD, POST"));
	http_add_header(out, "Access-Control-Allow-Headers",
			STR("Authorization, Content-Type, If-None-Match, Last-Event-ID"));
	http_add_header(out, "Access-Control-Max-Age", STR(CORS_MAX_AGE_S));
	return 0;
}

void cors_add(const struct config *config, const struct http_request *request,
	      struct http_response *out)
{
	const char *origin = cors_find(config, request);

	if (config->origins.count > 0)
		http_add_header(out, "Vary", STR("Origin"));
	if (!origin)
		return;
	http_add_header(out, "Access-Control-Allow-Origin", str_of(origin));
	http_add_header(out, "Access-Control-Expose-Headers", STR("ETag, Retry-After"));
}
