/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/survey.h"

#include "layers/base/json.h"
#include "registry/remote_priv.h"
#include "registry/url_priv.h"

#include <stdio.h>

#define SURVEY_TRIES 5
#define SURVEY_LINKS_MAX 100000 /* pages of one list */

struct survey {
	const struct survey_spec *spec;
	struct remote *remote;
	struct http *http;
	survey_fn *fn;
	void *ctx;
	size_t count;
	/* The circle that pages may lead in (Brent): where we were after 1, 2, 4, 8 of them. */
	struct buf seen;
	size_t pages;
};

static void auto_survey_release(struct survey *survey)
{
	http_close(survey->http);
	remote_close(survey->remote);
	buf_done(&survey->seen);
}

static int survey_connect(struct survey *survey, struct err *err)
{
	const struct survey_spec *spec = survey->spec;
	const struct remote_spec remote = {.host = spec->host,
					   .path = spec->path,
					   .plain_http = spec->plain_http,
					   .ca_file = spec->ca_file,
					   .user = spec->user,
					   .password = spec->password,
					   .tries = SURVEY_TRIES,
					   .cancel = spec->cancel};

	if (remote_open(&remote, &survey->remote, err) < 0)
		return -1;
	return remote_connect(survey->remote, &survey->http, err);
}

/* One page's names: 1 go on, 0 there are enough, -1. */
static int survey_take(struct survey *survey, struct str text, struct err *err)
{
	const char *key = survey->spec->path.len > 0 ? "tags" : "repositories";
	AUTO(json) json_t *document = NULL;
	json_t *list = NULL;
	struct err why = {0};
	json_t *name;
	size_t i;

	if (json_parse(text, SURVEY_PAGE_MAX, &document, &why) < 0)
		return err_set(err, ERR_REMOTE, "its list cannot be read: %s", why.text);
	if (!json_is_object(document) || json_get_array(document, "", key, &list, &why) < 0)
		return err_set(err, ERR_REMOTE, "its answer is no list of names");
	json_array_foreach(list, i, name)
	{
		if (!json_is_string(name))
			return err_set(err, ERR_REMOTE, "its list has what is no name");
		if (survey->count == SURVEY_MAX)
			return err_set(err, ERR_LIMIT, "more than %zu names", SURVEY_MAX);
		if (survey->fn(survey->ctx, json_str(name), err) < 0)
			return -1;
		if (++survey->count == survey->spec->limit)
			return 0;
	}
	return 1;
}

/* Where the next page is: 1, 0 this was the last, -1. */
static int survey_next(struct survey *survey, const struct remote_request *request,
		       const struct http_reply *response, struct buf *url, struct err *err)
{
	int more = remote_next_page(survey->remote, request, response, url, err);

	if (more <= 0)
		return more;
	if (++survey->pages > SURVEY_LINKS_MAX || str_equal(buf_str(url), buf_str(&survey->seen)))
		return err_set(err, ERR_REMOTE, "its pages have no end");
	if ((survey->pages & (survey->pages - 1)) > 0)
		return 1;
	buf_clear(&survey->seen);
	return buf_add(&survey->seen, buf_str(url), err) < 0 ? -1 : 1;
}

/* The first page, behind the repository or "/v2/"; escaped, for which it has to be a URL. */
static int survey_first(const struct survey_spec *spec, struct buf *out, const char **out_name,
			struct err *err)
{
	static const char any[] = "http://registry/";
	size_t n = spec->limit > 0 && spec->limit < SURVEY_PAGE ? spec->limit : SURVEY_PAGE;

	if (buf_addf(out, err, "%s%s?n=%zu", any, spec->path.len > 0 ? "list" : "_catalog", n) <
		    0 ||
	    (spec->after.len > 0 && url_add_query(out, "last", spec->after, err) < 0))
		return -1;
	*out_name = out->ptr + sizeof(any) - 1;
	return 0;
}

static int survey_list(struct survey *survey, struct err *err)
{
	auto_buf struct buf first = BUF_INIT(HTTP_URL_MAX);
	auto_buf struct buf url = BUF_INIT(HTTP_URL_MAX);
	auto_buf struct buf page = BUF_INIT(SURVEY_PAGE_MAX);
	auto_http_reply struct http_reply response = {0};
	struct remote_request request = {.accept = "application/json"};
	int more = 1;

	if (survey_first(survey->spec, &first, &request.name, err) < 0)
		return -1;
	request.kind = survey->spec->path.len > 0 ? "tags" : NULL;
	while (more == 1) {
		if (remote_get(survey->remote, survey->http, &request, "the list", &page, &response,
			       err) < 0)
			return -1;
		more = survey_take(survey, buf_str(&page), err);
		if (more == 1)
			more = survey_next(survey, &request, &response, &url, err);
		request.url = url.ptr;
	}
	return more;
}

static int survey_ping(struct survey *survey, struct http_reply *response, struct err *err)
{
	const struct remote_request request = {
		.method = HTTP_GET, .name = "", .document = true, .accept = "application/json"};

	return remote_send(survey->remote, survey->http, &request, "a registry", response, err);
}

/*
 * A registry that lists to nobody what nobody needs a password for does not ask
 * who we are, but for a ping. What it says to that does not matter.
 */
static int survey_show(struct survey *survey, struct err *err)
{
	auto_http_reply struct http_reply response = {0};

	if (survey->spec->path.len > 0 || survey->spec->user.len == 0)
		return 0;
	return survey_ping(survey, &response, err);
}

int survey_names(const struct survey_spec *spec, survey_fn *fn, void *ctx, struct err *err)
{
	AUTO(survey)
	struct survey survey = {.spec = spec, .fn = fn, .ctx = ctx, .seen = BUF_INIT(HTTP_URL_MAX)};

	if (survey_connect(&survey, err) < 0)
		return -1;
	if (survey_show(&survey, err) == 0 && survey_list(&survey, err) == 0)
		return 0;
	if (spec->path.len > 0)
		return err_ctx(err, "tags of " STR_FMT "/" STR_FMT, STR_ARG(spec->host),
			       STR_ARG(spec->path));
	return err_ctx(err, "repositories of " STR_FMT, STR_ARG(spec->host));
}

int survey_login(const struct survey_spec *spec, struct err *err)
{
	auto_http_reply struct http_reply response = {0};
	AUTO(survey) struct survey survey = {.spec = spec};

	if (survey_connect(&survey, err) < 0 || survey_ping(&survey, &response, err) < 0)
		return -1;
	if (response.status == 401)
		return err_set(err, ERR_UNAUTHORIZED, "the registry refuses these credentials");
	if (response.status != 200)
		return remote_refused(survey.remote, &response, "a registry", err);
	return remote_was_asked(survey.remote);
}
