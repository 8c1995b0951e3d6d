/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/http_easy_priv.h"

#include "layers/base/clock.h"

#define HTTP_READ_SIZE (256L * 1024)
#define HTTP_USER_AGENT "hearth/0.1"

/* Anything but len makes libcurl end the transfer. */
static size_t http_took(size_t len, int result)
{
	return result < 0 ? len + 1 : len;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the type is libcurl's */
static size_t http_on_header(char *bytes, size_t one, size_t len, void *ctx)
{
	struct http *http = ctx;
	struct http_reply *response = http->response;
	struct str line = {bytes, len * one};
	int result;

	http->bytes += line.len;
	http->header_bytes += line.len;
	/* Informational responses or a proxy's may come before the real one, but not for ever. */
	if (str_starts(line, STR("HTTP/")))
		buf_clear(&response->headers);
	while (line.len > 0 && (line.ptr[line.len - 1] == '\n' || line.ptr[line.len - 1] == '\r'))
		line.len--;
	result =
		http->header_bytes > HTTP_REPLY_HEADERS_MAX
			? -1
			: buf_addf(&response->headers, &http->failure, STR_FMT "\n", STR_ARG(line));
	if (result < 0)
		(void)err_set(&http->failure, ERR_LIMIT, "headers of more than %zu bytes",
			      HTTP_REPLY_HEADERS_MAX);
	return http_took(len * one, result);
}

/* The explanation of a refusal, as far as there is room; -1 ends a longer one. */
static int http_keep_error(struct http *http, struct str bytes)
{
	struct buf *body = &http->response->error_body;
	size_t room = body->max - body->len;
	struct err full;

	http->heard_enough = bytes.len > room;
	if (http->heard_enough)
		bytes.len = room;
	if (buf_add(body, bytes, &full) < 0)
		abort(); /* there was room */
	return http->heard_enough ? -1 : 0;
}

static int http_give(struct http *http, struct str bytes)
{
	struct http_reply *response = http->response;

	(void)curl_easy_getinfo(http->easy, CURLINFO_RESPONSE_CODE, &response->status);
	if (response->status != 200 && response->status != 206)
		return http_keep_error(http, bytes);
	if (!http->request->body)
		return 0;
	return http->request->body->write(http->request->body, bytes, &http->failure);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the type is libcurl's */
static size_t http_on_body(char *bytes, size_t one, size_t len, void *ctx)
{
	struct http *http = ctx;
	int64_t before = clock_monotonic_ms();
	int result;

	http->bytes += len * one;
	result = http_give(http, (struct str){bytes, len * one});
	http->since_ms += clock_monotonic_ms() - before;
	return http_took(len * one, result);
}

/* As much of the body as fits; 0 where it ends before its size, or fails. */
static size_t http_take_upload(struct http *http, char *out, size_t room)
{
	struct http_upload *upload = http->request->upload;
	size_t n;

	if (http->lent.len == 0 &&
	    upload->source.read(&upload->source, &http->lent, &http->failure) <= 0)
		return 0;
	n = http->lent.len < room ? http->lent.len : room;
	if (n > http->unsent)
		n = (size_t)http->unsent;
	memcpy(out, http->lent.ptr, n);
	http->lent = str_skip(http->lent, n);
	http->unsent -= n;
	return n;
}

static size_t http_on_send(char *out, size_t one, size_t len, void *ctx)
{
	struct http *http = ctx;
	int64_t before = clock_monotonic_ms();
	size_t n;

	if (http->unsent == 0)
		return 0;
	n = http_take_upload(http, out, len * one);
	http->since_ms += clock_monotonic_ms() - before;
	http->bytes += n;
	if (n == 0 && http->failure.kind == ERR_NONE)
		(void)err_set(&http->failure, ERR_CORRUPT, "there is less to send than its size");
	return n == 0 ? CURL_READFUNC_ABORT : n;
}

static void http_put_header(struct http *http, const char *name, const char *value)
{
	auto_buf struct buf line = BUF_INIT(HTTP_REPLY_HEADERS_MAX);
	struct curl_slist *longer;
	struct err err;

	if (buf_addf(&line, &err, "%s: %s", name, value) < 0)
		abort();
	longer = curl_slist_append(http->headers, line.ptr);
	if (!longer)
		abort();
	http->headers = longer;
}

static void http_set_headers(struct http *http, const struct http_call *request)
{
	http_put_header(http, "Accept-Encoding", "identity");
	if (request->accept)
		http_put_header(http, "Accept", request->accept);
	if (request->range) {
		char range[64];

		(void)snprintf(range, sizeof(range), "bytes=%s", request->range);
		http_put_header(http, "Range", range);
	}
	if (request->content_type)
		http_put_header(http, "Content-Type", request->content_type);
	if (request->content_range)
		http_put_header(http, "Content-Range", request->content_range);
	/* Not every server says 100, and waiting for it takes a second each time. */
	if (request->upload)
		http_put_header(http, "Expect", "");
	(void)curl_easy_setopt(http->easy, CURLOPT_HTTPHEADER, http->headers);
}

static void http_set_credential(CURL *easy, const struct http_call *request)
{
	if (!secret_is_empty(request->bearer)) {
		(void)curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
		(void)curl_easy_setopt(easy, CURLOPT_XOAUTH2_BEARER,
				       secret_reveal(request->bearer));
	} else if (request->user) {
		(void)curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
		(void)curl_easy_setopt(easy, CURLOPT_USERNAME, request->user);
		(void)curl_easy_setopt(easy, CURLOPT_PASSWORD, secret_reveal(request->password));
	}
}

static void http_set_method(struct http *http, const struct http_call *request)
{
	CURL *easy = http->easy;

	if (request->method == HTTP_HEAD)
		(void)curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
	else if (request->method != HTTP_GET)
		(void)curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST,
				       http_method_name(request->method));
	if (request->method == HTTP_GET || request->method == HTTP_HEAD ||
	    request->method == HTTP_DELETE)
		return;
	(void)curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)http->unsent);
	(void)curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, HTTP_READ_SIZE);
	(void)curl_easy_setopt(easy, CURLOPT_READFUNCTION, http_on_send);
	(void)curl_easy_setopt(easy, CURLOPT_READDATA, http);
}

void http_easy_prepare(struct http *http, const struct http_call *request)
{
	CURL *easy = http->easy;

	curl_easy_reset(easy);
	(void)curl_easy_setopt(easy, CURLOPT_URL, request->url);
	http_set_method(http, request);
	(void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	(void)curl_easy_setopt(easy, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
	/* One connection is one stream, so a sink that blocks holds up nothing else. */
	(void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	(void)curl_easy_setopt(easy, CURLOPT_USERAGENT, HTTP_USER_AGENT);
	(void)curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, HTTP_READ_SIZE);
	(void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)http->options.connect_ms);
	(void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	/* A cancel does not wait for a resolver that hangs. */
	(void)curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
	if (http->options.ca_file)
		(void)curl_easy_setopt(easy, CURLOPT_CAINFO, http->options.ca_file);
	if (request->direct)
		(void)curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
	(void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, http->why);
	(void)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, http_on_header);
	(void)curl_easy_setopt(easy, CURLOPT_HEADERDATA, http);
	(void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, http_on_body);
	(void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, http);
	http_set_headers(http, request);
	http_set_credential(easy, request);
}
