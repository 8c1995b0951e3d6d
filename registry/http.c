/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/http_easy_priv.h"

#include "layers/base/clock.h"
#include "registry/url_priv.h"

#include <poll.h>

#define HTTP_POLL_MS 1000

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

void http_trust(struct http *http, const char *ca_file)
{
	http->options.ca_file = ca_file;
}

/* Of both cancels: 0, or ERR_CANCELLED. */
static int http_check_cancel(const struct http *http, struct err *err)
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

static void http_begin(struct http *http, const struct http_call *request,
		       struct http_reply *response)
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
	response->headers.max = HTTP_REPLY_HEADERS_MAX;
	response->error_body.max = HTTP_ERROR_BODY_MAX;
	buf_clear(&response->headers);
	buf_clear(&response->error_body);
	response->location[0] = '\0';
	response->retry_after_ms = -1;
	response->worth_retrying = false;
	response->nearness = URL_PUBLIC;
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

/* Drive libcurl until the transfer has ended. */
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
	case CURLE_SSL_CACERT_BADFILE:
		return err_set(err, ERR_INVALID, "the CA file cannot be used (%s)", why);
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_ISSUER_ERROR:
		return err_set(err, ERR_REMOTE,
			       "its certificate is not trusted (%s); name its authority's "
			       "certificate (--ca-file, or an upstream's ca)",
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
				       "asked for: --plain-http, or registry.insecure in the "
				       "configuration");
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
	struct http_reply *response = http->response;
	struct str location = http_header(response, "Location");
	auto_buf struct buf joined = BUF_INIT(HTTP_URL_MAX);
	struct err ignored;

	if (location.len > 0 && url_join(http->request->url, location, &joined, &ignored) == 0 &&
	    joined.len < sizeof(response->location))
		memcpy(response->location, joined.ptr, joined.len + 1);
}

/* Another port than the URL's is a proxy's: that one may be here, and what it reaches is not. */
static enum url_nearness http_peer_nearness(struct http *http)
{
	enum url_nearness nearness;
	char host[URL_HOST_MAX];
	char *address = NULL;
	struct err ignored;
	struct url url;
	long port = 0;
	bool six;

	(void)curl_easy_getinfo(http->easy, CURLINFO_PRIMARY_IP, &address);
	(void)curl_easy_getinfo(http->easy, CURLINFO_PRIMARY_PORT, &port);
	if (!address || url_parse(http->request->url, &url, &ignored) < 0)
		return URL_PUBLIC;
	six = strchr(address, ':') != NULL;
	(void)snprintf(host, sizeof(host), "%s%s%s", six ? "[" : "", address, six ? "]" : "");
	nearness = url_host_nearness(host);
	return nearness == URL_HOME && port != (long)url.port ? URL_PRIVATE : nearness;
}

static void http_note_answer(struct http *http)
{
	struct http_reply *response = http->response;
	curl_off_t seconds = 0;

	(void)curl_easy_getinfo(http->easy, CURLINFO_RESPONSE_CODE, &response->status);
	http_note_location(http);
	response->nearness = http_peer_nearness(http);
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

int http_send(struct http *http, const struct http_call *request, struct http_reply *response,
	      struct err *err)
{
	int result;

	http_begin(http, request, response);
	if (request->upload && request->upload->rewind(request->upload, err) < 0)
		return -1;
	http_easy_prepare(http, request);
	result = http_transfer(http, err);
	(void)curl_multi_remove_handle(http->multi, http->easy);
	curl_slist_free_all(http->headers);
	return result;
}
