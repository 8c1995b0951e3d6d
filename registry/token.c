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

/* A form's value: all that is not plain is escaped. */
static int form_add_secret(struct buf *form, const struct secret *secret, struct err *err)
{
	for (const char *at = secret_reveal(secret); *at; at++) {
		unsigned char c = (unsigned char)*at;
		bool plain = isalnum(c) || c == '-' || c == '_' || c == '.' || c == '~';

		if ((plain ? buf_add(form, (struct str){at, 1}, err)
			   : buf_addf(form, err, "%%%02X", c)) < 0)
			return -1;
	}
	return 0;
}

/* The question's own query becomes the form's first part. */
static int form_make(const struct token_question *question, struct str query, struct buf *out,
		     struct err *err)
{
	if (buf_addf(out, err, STR_FMT "&client_id=hearth&grant_type=refresh_token&refresh_token=",
		     STR_ARG(query)) < 0)
		return -1;
	return form_add_secret(out, question->password, err);
}

/* Until an answer comes that is one, or tries and patience are over. */
static int token_send(const struct token_question *question, struct http *http,
		      const struct http_call *request, struct buf *answer, struct err *err)
{
	auto_http_reply struct http_reply response = {0};
	struct retry retry = question->retry;

	for (;;) {
		bool again;

		buf_clear(answer);
		if (http_send(http, request, &response, err) == 0) {
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

int token_ask(const struct token_question *question, struct http *http, struct secret *out,
	      int64_t *out_life_ms, struct err *err)
{
	auto_buf struct buf answer = BUF_WIPED(TOKEN_ANSWER_MAX);
	auto_buf struct buf form = BUF_WIPED(TOKEN_FORM_MAX);
	auto_buf struct buf where = BUF_INIT(HTTP_URL_MAX);
	struct str rest = str_of(question->url);
	struct buf_sink sink = BUF_SINK(&answer);
	struct text_body body;
	struct url url;
	struct str bare;
	struct http_call request = {.method = HTTP_GET,
				    .url = question->url,
				    .password = question->password,
				    .document = true,
				    .body = &sink.sink};

	if (url_parse(question->url, &url, err) < 0)
		return -1;
	request.direct = url_host_is_loopback(url.host);
	if (question->proof == TOKEN_PASSWORD)
		request.user = question->user;
	if (question->proof == TOKEN_IDENTITY && str_cut(&rest, '?', &bare)) {
		if (form_make(question, rest, &form, err) < 0 || buf_add(&where, bare, err) < 0)
			return -1;
		text_body_init(&body, buf_str(&form));
		request.url = where.ptr;
		request.method = HTTP_POST;
		request.content_type = "application/x-www-form-urlencoded";
		request.upload = &body.http;
	}
	if (token_send(question, http, &request, &answer, err) < 0)
		return -1;
	return token_read(buf_str(&answer), out, out_life_ms, err);
}
