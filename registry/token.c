/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/token_priv.h"

#include "layers/base/json.h"
#include "registry/text_body_priv.h"
#include "registry/url_priv.h"

#include <ctype.h>

#define TOKEN_LIFE_MS 60000                           /* of a token that does not say */
#define TOKEN_LIFE_MAX_MS ((int64_t)24 * 3600 * 1000) /* one that says more is asked for daily */
#define TOKEN_FORM_MAX (3 * SECRET_MAX + HTTP_URL_MAX)

/* The token of an answer, which must be fit for a header. */
static int token_read(struct str text, struct secret *out, int64_t *out_life_ms, struct err *err)
{
	AUTO(json) json_t *document = NULL;
	struct err why = {0};
	struct str token = STR("");
	int64_t seconds = 0;

	if (json_parse(text, TOKEN_ANSWER_MAX, &document, &why) < 0 || !json_is_object(document))
		return err_set(err, ERR_REMOTE, "its answer is not JSON");
	if (json_get_string(document, "", "token", &token, &why) < 0 ||
	    (token.len == 0 && json_get_string(document, "", "access_token", &token, &why) < 0))
		return err_set(err, ERR_REMOTE, "%s", why.text);
	if (token.len == 0)
		return err_set(err, ERR_REMOTE, "its answer holds no token");
	for (size_t i = 0; i < token.len; i++) {
		if (!isgraph((unsigned char)token.ptr[i]))
			return err_set(err, ERR_REMOTE, "its token is not one");
	}
	*out_life_ms = TOKEN_LIFE_MS;
	if (json_get_int(document, "", "expires_in", &seconds, &why) == 1 && seconds > 0)
		*out_life_ms =
			seconds < TOKEN_LIFE_MAX_MS / 1000 ? seconds * 1000 : TOKEN_LIFE_MAX_MS;
	return secret_put(out, token, err);
}

static int token_refused(long status, enum token_proof proof, struct err *err)
{
	if (status == 401 || status == 403)
		return err_set(err, ERR_UNAUTHORIZED,
			       proof != TOKEN_ANONYMOUS ? "it refuses these credentials"
							: "it gives nothing without credentials");
	if (status == 429)
		return err_set(err, ERR_BUSY, "too many requests; try later");
	return err_set(err, ERR_REMOTE, "unexpected status %ld", status);
}

/* The question's own query becomes the form's first part. */
static int token_make_form(const struct token_question *question, struct str query, struct buf *out,
			   struct err *err)
{
	if (buf_addf(out, err, STR_FMT "&client_id=hearth&grant_type=refresh_token&refresh_token=",
		     STR_ARG(query)) < 0)
		return -1;
	return http_add_escaped(out, secret_bytes(question->password), "", err);
}

/* Ask until there is a usable answer, or the tries are used up. *status is the last one's. */
static int token_send(const struct token_question *question, struct http *http,
		      const struct http_call *request, struct buf *answer, long *status,
		      struct err *err)
{
	auto_http_reply struct http_reply response = {0};
	struct retry retry = question->retry;

	for (;;) {
		bool again;

		buf_clear(answer);
		*status = 0;
		if (http_send(http, request, &response, err) == 0) {
			*status = response.status;
			if (response.status == 200)
				return 0;
			again = retry_status(response.status);
			(void)token_refused(response.status, question->proof, err);
		} else {
			again = response.worth_retrying;
		}
		if (!again || retry_wait(&retry, http, response.retry_after_ms, err) < 0)
			return -1;
	}
}

/* Who does not speak OAuth 2 says so in many ways. */
static bool token_knows_no_post(long status)
{
	return status == 400 || status == 401 || status == 404 || status == 405;
}

/* Of this host, which no proxy leads to. */
static bool token_is_near(const char *text)
{
	struct err ignored;
	struct url url;

	return url_parse(text, &url, &ignored) == 0 && url_host_is_loopback(url.host);
}

static int token_get(const struct token_question *question, struct http *http, const char *user,
		     struct buf *answer, struct err *err)
{
	struct buf_sink sink = BUF_SINK(answer);
	const struct http_call request = {.method = HTTP_GET,
					  .url = question->url,
					  .direct = token_is_near(question->url),
					  .user = user,
					  .password = question->password,
					  .document = true,
					  .body = &sink.sink};
	long status;

	return token_send(question, http, &request, answer, &status, err);
}

/* 0, 1 where the service seems to know no such question (*err says what it said), -1. */
static int token_post(const struct token_question *question, struct http *http, struct buf *answer,
		      struct err *err)
{
	auto_buf struct buf form = BUF_WIPED(TOKEN_FORM_MAX);
	auto_buf struct buf where = BUF_INIT(HTTP_URL_MAX);
	struct buf_sink sink = BUF_SINK(answer);
	struct str query = str_of(question->url);
	struct text_body body;
	struct http_call request = {.method = HTTP_POST,
				    .direct = token_is_near(question->url),
				    .content_type = "application/x-www-form-urlencoded",
				    .document = true,
				    .body = &sink.sink,
				    .upload = &body.http};
	struct str bare;
	long status;

	(void)str_cut(&query, '?', &bare);
	if (token_make_form(question, query, &form, err) < 0 || buf_add(&where, bare, err) < 0)
		return -1;
	text_body_init(&body, buf_str(&form));
	request.url = where.ptr;
	if (token_send(question, http, &request, answer, &status, err) == 0)
		return 0;
	return token_knows_no_post(status) ? 1 : -1;
}

/* An identity token may be a password to who does not speak OAuth 2. */
static int token_get_answer(const struct token_question *question, struct http *http,
			    struct buf *answer, struct err *err)
{
	int result;

	switch (question->proof) {
	case TOKEN_IDENTITY:
		result = token_post(question, http, answer, err);
		return result == 1 ? token_get(question, http, "", answer, err) : result;
	case TOKEN_PASSWORD:
		return token_get(question, http, question->user, answer, err);
	case TOKEN_ANONYMOUS:
		break;
	}
	return token_get(question, http, NULL, answer, err);
}

int token_ask(const struct token_question *question, struct http *http, struct secret *out,
	      int64_t *out_life_ms, struct err *err)
{
	auto_buf struct buf answer = BUF_WIPED(TOKEN_ANSWER_MAX);

	if (token_get_answer(question, http, &answer, err) < 0)
		return -1;
	return token_read(buf_str(&answer), out, out_life_ms, err);
}
