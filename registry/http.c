/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/http_priv.h"

#include "layers/base/clock.h"
#include "registry/url_priv.h"

#include <curl/curl.h>
#include <poll.h>
#include <strings.h>

#define HTTP_READ_SIZE (256L * 1024)
#define HTTP_POLL_MS 1000
#define HTTP_USER_AGENT "hearth/0.1"

struct http {
	struct http_options options;
	CURL *easy;
	CURLM *multi;
	char why[CURL_ERROR_SIZE];
	/* of the request that is being sent: */
	const struct http_request *request;
	struct http_response *response;
	struct curl_slist *headers;
	struct err failure;  /* of a callback of ours */
	size_t header_bytes; /* with those of informational answers */
	bool heard_enough;   /* of an error's body */
	struct str lent;     /* what libcurl has not taken yet of the body that is sent */
	uint64_t unsent;     /* of that body */
	uint64_t bytes;      /* received and sent */
	uint64_t bytes_then; /* at `since_ms` */
	int64_t since_ms;    /* moves on while sink or source make us wait */
	int64_t begun_ms;
};

int http_open(const struct http_options *options, struct http **out, struct err *err)
{
	struct http *http;

	/* Counted and thread-safe since 7.84. */
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return err_set(err, ERR_OS, "libcurl cannot start");
	http = calloc(1, sizeof(*http));
	if (!http)
		abort();
	http->options = *options;
	if (http->options.connect_ms == 0)
		http->options.connect_ms = HTTP_CONNECT_MS;
	if (http->options.stall_ms == 0)
		http->options.stall_ms = HTTP_STALL_MS;
	if (http->options.document_ms == 0)
		http->options.document_ms = HTTP_DOCUMENT_MS;
	http->easy = curl_easy_init();
	http->multi = curl_multi_init();
	if (!http->easy || !http->multi)
		abort();
	*out = http;
	return 0;
}

void http_close(struct http *http)
{
	if (!http)
		return;
	curl_easy_cleanup(http->easy);
	(void)curl_multi_cleanup(http->multi);
	free(http);
	curl_global_cleanup();
}

int http_check_cancel(const struct http *http, struct err *err)
{
	if (cancel_check(http->options.cancel, err) < 0)
		return -1;
	return cancel_check(http->options.cancel_too, err);
}

/* Sleep until fd can be read (1), the time is over (0, as after a signal), or one cancels. */
static int http_poll(const struct http *http, int fd, const struct timespec *timeout,
		     struct err *err)
{
	struct pollfd fds[] = {
		{.fd = fd, .events = POLLIN},
		{.fd = cancel_fd(http->options.cancel), .events = POLLIN},
		{.fd = cancel_fd(http->options.cancel_too), .events = POLLIN},
	};

	if (ppoll(fds, 3, timeout, NULL) < 0 && errno != EINTR)
		return err_os(err, errno, "wait");
	if (http_check_cancel(http, err) < 0)
		return -1;
	return fds[0].revents != 0;
}

int http_wait(const struct http *http, int64_t ms, struct err *err)
{
	const int64_t until = clock_monotonic_ms() + ms;
	int64_t left;

	if (http_check_cancel(http, err) < 0)
		return -1;
	while ((left = until - clock_monotonic_ms()) > 0) {
		const struct timespec timeout = {left / 1000, left % 1000 * 1000000};

		if (http_poll(http, -1, &timeout, err) < 0)
			return -1;
	}
	return 0;
}

int http_wait_readable(const struct http *http, int fd, struct err *err)
{
	int readable = 0;

	while (readable == 0)
		readable = http_poll(http, fd, NULL, err);
	return readable < 0 ? -1 : 0;
}

/* Anything but len makes libcurl end the transfer. */
static size_t http_took(size_t len, int result)
{
	return result < 0 ? len + 1 : len;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the type is libcurl's */
static size_t http_on_header(char *bytes, size_t one, size_t len, void *ctx)
{
	struct http *http = ctx;
	struct http_response *response = http->response;
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
		http->header_bytes > HTTP_HEADERS_MAX
			? -1
			: buf_addf(&response->headers, &http->failure, STR_FMT "\n", STR_ARG(line));
	if (result < 0)
		(void)err_set(&http->failure, ERR_LIMIT, "headers of more than %zu bytes",
			      HTTP_HEADERS_MAX);
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
	struct http_response *response = http->response;

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

static void http_add_header(struct http *http, const char *name, const char *value)
{
	auto_buf struct buf line = BUF_INIT(HTTP_HEADERS_MAX);
	struct curl_slist *longer;
	struct err err;

	if (buf_addf(&line, &err, "%s: %s", name, value) < 0)
		abort();
	longer = curl_slist_append(http->headers, line.ptr);
	if (!longer)
		abort();
	http->headers = longer;
}

static void http_set_headers(struct http *http, const struct http_request *request)
{
	http_add_header(http, "Accept-Encoding", "identity");
	if (request->accept)
		http_add_header(http, "Accept", request->accept);
	if (request->range) {
		char range[64];

		(void)snprintf(range, sizeof(range), "bytes=%s", request->range);
		http_add_header(http, "Range", range);
	}
	if (request->content_type)
		http_add_header(http, "Content-Type", request->content_type);
	if (request->content_range)
		http_add_header(http, "Content-Range", request->content_range);
	/* Not every server says 100, and waiting for it takes a second each time. */
	if (request->upload)
		http_add_header(http, "Expect", "");
	(void)curl_easy_setopt(http->easy, CURLOPT_HTTPHEADER, http->headers);
}

static void http_set_credential(CURL *easy, const struct http_request *request)
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

static void http_set_method(struct http *http, const struct http_request *request)
{
	static const char *const names[] = {
		[HTTP_GET] = "GET", [HTTP_HEAD] = "HEAD",   [HTTP_POST] = "POST",
		[HTTP_PUT] = "PUT", [HTTP_PATCH] = "PATCH", [HTTP_DELETE] = "DELETE",
	};
	CURL *easy = http->easy;

	if (request->method == HTTP_HEAD)
		(void)curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
	else if (request->method != HTTP_GET)
		(void)curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, names[request->method]);
	if (request->method == HTTP_GET || request->method == HTTP_HEAD ||
	    request->method == HTTP_DELETE)
		return;
	(void)curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)http->unsent);
	(void)curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, HTTP_READ_SIZE);
	(void)curl_easy_setopt(easy, CURLOPT_READFUNCTION, http_on_send);
	(void)curl_easy_setopt(easy, CURLOPT_READDATA, http);
}

static void http_prepare(struct http *http, const struct http_request *request)
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

static void http_begin(struct http *http, const struct http_request *request,
		       struct http_response *response)
{
	http->request = request;
	http->response = response;
	http->headers = NULL;
	http->failure = (struct err){0};
	http->why[0] = '\0';
	http->header_bytes = 0;
	http->heard_enough = false;
	http->lent = STR("");
	http->unsent = request->upload ? request->upload->size : 0;
	http->bytes = http->bytes_then = 0;
	http->begun_ms = http->since_ms = clock_monotonic_ms();
	response->status = 0;
	response->headers.max = HTTP_HEADERS_MAX;
	response->error_body.max = HTTP_ERROR_BODY_MAX;
	buf_clear(&response->headers);
	buf_clear(&response->error_body);
	response->location[0] = '\0';
	response->retry_after_ms = -1;
	response->worth_retrying = false;
}

static int http_give_up(struct http *http, struct err *err, const char *what, int64_t ms)
{
	http->response->worth_retrying = true;
	return err_set(err, ERR_TIMEOUT, "%s %lld ms", what, (long long)ms);
}

static int http_check_stall(struct http *http, struct err *err)
{
	const bool sent = http->request->upload && http->unsent == 0;
	const int64_t patience_ms =
		(int64_t)http->options.stall_ms * (sent ? HTTP_COMMIT_STALLS : 1);
	int64_t now = clock_monotonic_ms();

	if (http->bytes - http->bytes_then >= HTTP_STALL_BYTES) {
		http->bytes_then = http->bytes;
		http->since_ms = now;
	}
	if (http->request->document && now - http->begun_ms > http->options.document_ms)
		return http_give_up(http, err, "the server did not answer in full within",
				    http->options.document_ms);
	if (now - http->since_ms > patience_ms)
		return http_give_up(http, err, "the server was silent for", patience_ms);
	return 0;
}

static int http_poll_ms(const struct http *http)
{
	int ms = HTTP_POLL_MS;

	if (http->options.stall_ms < ms)
		ms = http->options.stall_ms;
	if (http->request->document && http->options.document_ms < ms)
		ms = http->options.document_ms;
	return ms;
}

/* Turn the crank until the transfer has ended. */
static int http_run(struct http *http, struct err *err)
{
	struct curl_waitfd waits[2];
	unsigned wait_count = 0;
	int running = 1;

	if (cancel_fd(http->options.cancel) >= 0)
		waits[wait_count++] = (struct curl_waitfd){.fd = cancel_fd(http->options.cancel),
							   .events = CURL_WAIT_POLLIN};
	if (cancel_fd(http->options.cancel_too) >= 0)
		waits[wait_count++] = (struct curl_waitfd){
			.fd = cancel_fd(http->options.cancel_too), .events = CURL_WAIT_POLLIN};
	while (running > 0) {
		if (http_check_cancel(http, err) < 0)
			return -1;
		if (curl_multi_perform(http->multi, &running) != CURLM_OK)
			return err_set(err, ERR_OS, "libcurl gave up");
		if (running == 0)
			break;
		if (http_check_stall(http, err) < 0)
			return -1;
		if (curl_multi_poll(http->multi, waits, wait_count, http_poll_ms(http), NULL) !=
		    CURLM_OK)
			return err_set(err, ERR_OS, "libcurl cannot wait");
	}
	return 0;
}

static CURLcode http_result(struct http *http)
{
	const CURLMsg *message;
	CURLcode code = CURLE_OK;
	int left;

	while ((message = curl_multi_info_read(http->multi, &left))) {
		if (message->msg == CURLMSG_DONE)
			code = message->data.result;
	}
	return code;
}

/* What libcurl says, and whether trying again can help. */
static int http_explain(struct http *http, CURLcode code, struct err *err)
{
	const char *why = http->why[0] ? http->why : curl_easy_strerror(code);

	switch ((int)code) {
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_ISSUER_ERROR:
		return err_set(err, ERR_REMOTE,
			       "its certificate is not trusted (%s); name its authority's "
			       "certificate as the CA file",
			       why);
	case CURLE_URL_MALFORMAT:
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_LOGIN_DENIED:
		return err_set(err, ERR_REMOTE, "the server sends us to a bad URL (%s)", why);
	case CURLE_OPERATION_TIMEDOUT:
		http->response->worth_retrying = true;
		return err_set(err, ERR_TIMEOUT, "%s", why);
	case CURLE_SSL_CONNECT_ERROR:
		if (strstr(why, "wrong version number") || strstr(why, "packet length"))
			return err_set(err, ERR_REMOTE,
				       "the server does not speak HTTPS; plain HTTP has to be "
				       "asked for");
		break;
	default:
		break;
	}
	http->response->worth_retrying = true;
	return err_set(err, ERR_REMOTE, "%s", why);
}

/* Where the answer points, whatever its status is. */
static void http_note_location(struct http *http)
{
	struct http_response *response = http->response;
	struct str location = http_header(response, "Location");
	auto_buf struct buf joined = BUF_INIT(HTTP_URL_MAX);
	struct err ignored;

	if (location.len > 0 && url_join(http->request->url, location, &joined, &ignored) == 0 &&
	    joined.len < sizeof(response->location))
		memcpy(response->location, joined.ptr, joined.len + 1);
}

static void http_note_answer(struct http *http)
{
	struct http_response *response = http->response;
	curl_off_t seconds = 0;

	(void)curl_easy_getinfo(http->easy, CURLINFO_RESPONSE_CODE, &response->status);
	http_note_location(http);
	(void)curl_easy_getinfo(http->easy, CURLINFO_RETRY_AFTER, &seconds);
	if (seconds > HTTP_RETRY_AFTER_MAX_MS / 1000)
		seconds = HTTP_RETRY_AFTER_MAX_MS / 1000;
	if (seconds > 0)
		response->retry_after_ms = (int64_t)seconds * 1000;
}

static int http_transfer(struct http *http, struct err *err)
{
	CURLcode code;

	if (curl_multi_add_handle(http->multi, http->easy) != CURLM_OK)
		return err_set(err, ERR_OS, "libcurl cannot start a transfer");
	if (http_run(http, err) < 0)
		return -1;
	code = http_result(http);
	if (http->failure.kind != ERR_NONE) {
		*err = http->failure;
		return -1;
	}
	if (code != CURLE_OK && !http->heard_enough)
		return http_explain(http, code, err);
	http_note_answer(http);
	return 0;
}

int http_send(struct http *http, const struct http_request *request, struct http_response *response,
	      struct err *err)
{
	int result;

	http_begin(http, request, response);
	if (request->upload && request->upload->rewind(request->upload, err) < 0)
		return -1;
	http_prepare(http, request);
	result = http_transfer(http, err);
	(void)curl_multi_remove_handle(http->multi, http->easy);
	curl_slist_free_all(http->headers);
	return result;
}

bool http_header_next(struct str *rest, const char *name, struct str *out)
{
	const size_t name_len = strlen(name);

	while (rest->len > 0) {
		const char *end = memchr(rest->ptr, '\n', rest->len);
		struct str line = {rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};
		size_t used = end ? line.len + 1 : line.len;

		*rest = str_skip(*rest, used);
		if (line.len <= name_len || line.ptr[name_len] != ':' ||
		    strncasecmp(line.ptr, name, name_len) != 0)
			continue;
		line = str_skip(line, name_len + 1);
		while (line.len > 0 && (line.ptr[0] == ' ' || line.ptr[0] == '\t'))
			line = str_skip(line, 1);
		while (line.len > 0 &&
		       (line.ptr[line.len - 1] == ' ' || line.ptr[line.len - 1] == '\t'))
			line.len--;
		*out = line;
		return true;
	}
	return false;
}

struct str http_header(const struct http_response *response, const char *name)
{
	struct str rest = buf_str(&response->headers);
	struct str value;

	return http_header_next(&rest, name, &value) ? value : STR("");
}

void http_response_done(struct http_response *response)
{
	buf_done(&response->headers);
	buf_done(&response->error_body);
}
