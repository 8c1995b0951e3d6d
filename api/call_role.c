/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call_role.c - the role that speaks HTTP for call.c.
 *
 *	{"method", "args", "token", "raw", "url" or "data"} -> what the daemon answered
 *	{..., "stream"}, without "args" -> the same: the body is read from WORK_FD_STREAM
 *	{..., "etag"} -> {"etag", "answer"}, which is none where it is still that one
 *	{"path", "token", "url" or "data"} -> {"answer", "link"}: the registry's, and its Link
 */
#include "api/call.h"
#include "bake/wire.h"
#include "bake/work.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define CALL_URL_MAX ((size_t)8 * 1024)
#define CALL_CONNECT_MS 10000L
#define CALL_POLL_MS 1000

struct caller {
	json_t *request; /* owned */
	CURL *easy;
	CURLM *multi;
	struct curl_slist *headers;
	struct buf body;   /* to send */
	struct buf answer; /* what was said, where it is not passed on */
	bool raw;
	bool tagged;        /* the answer's ETag is asked for */
	bool linked;        /* and so is its Link */
	struct err failure; /* of a callback */
};

static void auto_caller_release(struct caller *caller)
{
	if (caller->multi && caller->easy)
		(void)curl_multi_remove_handle(caller->multi, caller->easy);
	curl_easy_cleanup(caller->easy);
	(void)curl_multi_cleanup(caller->multi);
	curl_slist_free_all(caller->headers);
	json_decref(caller->request);
	buf_done(&caller->body);
	buf_done(&caller->answer);
}

static long caller_status(const struct caller *caller)
{
	long status = 0;

	(void)curl_easy_getinfo(caller->easy, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the type is libcurl's */
static size_t caller_hear(char *bytes, size_t one, size_t len, void *ctx)
{
	struct caller *caller = ctx;
	struct str piece = {bytes, one * len};
	bool passed = caller->raw && caller_status(caller) / 100 == 2;
	int result = passed ? wire_send(WORK_FD_ASKER, WIRE_LOG, piece, &caller->failure)
			    : buf_add(&caller->answer, piece, &caller->failure);

	return result < 0 ? piece.len + 1 : piece.len; /* which ends the transfer */
}

static int caller_add_header(struct caller *caller, struct str name, struct str value,
			     struct err *err)
{
	auto_buf struct buf line = BUF_WIPED(SECRET_MAX + 64);
	struct curl_slist *more;

	if (buf_add(&line, name, err) < 0 || buf_add(&line, value, err) < 0)
		return -1;
	more = curl_slist_append(caller->headers, line.ptr);
	if (!more)
		abort();
	caller->headers = more;
	return 0;
}

/* Only another answer than this is wanted; "" for any. */
static int caller_set_etag(struct caller *caller, struct err *err)
{
	struct str etag = STR("");
	int found = json_get_string(caller->request, "", "etag", &etag, err);

	caller->tagged = found == 1;
	if (found < 0 || etag.len == 0)
		return found < 0 ? -1 : 0;
	return caller_add_header(caller, STR("If-None-Match: "), etag, err);
}

/* A URL of unix:/PATH: which socket is meant, and the host is any. */
static struct str caller_use_socket(const struct caller *caller, struct str base)
{
	if (!str_starts(base, STR("unix:/")))
		return base;
	(void)curl_easy_setopt(caller->easy, CURLOPT_UNIX_SOCKET_PATH, base.ptr + strlen("unix:"));
	return STR("http://localhost");
}

static int caller_set_url(struct caller *caller, struct err *err)
{
	auto_buf struct buf url = BUF_INIT(CALL_URL_MAX);
	struct str base = STR("http://localhost");
	struct str path = STR("");
	struct str method = STR("");

	if (json_get_string(caller->request, "", "url", &base, err) < 0 ||
	    json_get_string(caller->request, "", "path", &path, err) < 0 ||
	    (path.len == 0 && json_need_string(caller->request, "", "method", &method, err) < 0))
		return -1;
	base = caller_use_socket(caller, base);
	if (!str_starts(base, STR("http://")) && !str_starts(base, STR("https://")))
		return err_set(err, ERR_INVALID,
			       "HEARTH_URL: expected http(s):// or unix:/PATH, found " STR_FMT,
			       STR_ARG(base));
	while (base.len > 0 && base.ptr[base.len - 1] == '/')
		base.len--;
	if (buf_addf(&url, err, STR_FMT STR_FMT STR_FMT, STR_ARG(base),
		     STR_ARG(path.len > 0 ? path : STR("/v1/")), STR_ARG(method)) < 0)
		return -1;
	(void)curl_easy_setopt(caller->easy, CURLOPT_URL, url.ptr);
	return 0;
}

/* By way of the descriptor: a path of any length has to fit into 108 bytes. */
static int caller_set_socket(const struct caller *caller, int *out_runfd, struct err *err)
{
	auto_free char *dir = NULL;
	char path[64];
	struct str data = {0};
	int found = json_get_string(caller->request, "", "data", &data, err);

	if (found <= 0)
		return found;
	if (asprintf(&dir, STR_FMT "/run", STR_ARG(data)) < 0)
		abort();
	*out_runfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*out_runfd < 0 || faccessat(*out_runfd, "hearth.sock", F_OK, 0) < 0)
		return err_set(err, ERR_UNAVAILABLE,
			       "no daemon serves " STR_FMT ": start one by hearth serve",
			       STR_ARG(data));
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/hearth.sock", *out_runfd);
	(void)curl_easy_setopt(caller->easy, CURLOPT_UNIX_SOCKET_PATH, path);
	return 0;
}

/* The next bytes of the body, or our asker leaves. */
static size_t caller_read(char *out, size_t one, size_t count, void *ctx)
{
	struct pollfd fds[] = {{.fd = WORK_FD_STREAM, .events = POLLIN},
			       {.fd = WORK_FD_ASKER, .events = POLLIN}};
	struct caller *caller = ctx;
	ssize_t n = -1;

	while (n < 0) {
		(void)poll(fds, 2, -1);
		if (fds[1].revents) {
			(void)err_set(&caller->failure, ERR_CANCELLED, "cancelled");
			return CURL_READFUNC_ABORT;
		}
		n = read(WORK_FD_STREAM, out, one * count);
		if (n < 0 && errno != EINTR && errno != EAGAIN) {
			(void)err_os(&caller->failure, errno, "read");
			return CURL_READFUNC_ABORT;
		}
	}
	return (size_t)n;
}

static int caller_set_stream(struct caller *caller, struct err *err)
{
	(void)curl_easy_setopt(caller->easy, CURLOPT_POST, 1L);
	(void)curl_easy_setopt(caller->easy, CURLOPT_READFUNCTION, caller_read);
	(void)curl_easy_setopt(caller->easy, CURLOPT_READDATA, caller);
	if (caller_add_header(caller, STR("Transfer-Encoding: "), STR("chunked"), err) < 0)
		return -1;
	return caller_add_header(caller, STR("Content-Type: "), STR("application/x-tar"), err);
}

static int caller_set_body(struct caller *caller, struct err *err)
{
	bool stream = false;
	json_t *args;

	if (json_get_bool(caller->request, "", "stream", &stream, err) < 0)
		return -1;
	caller->linked = json_object_get(caller->request, "path") != NULL;
	if (caller->linked)
		return 0;
	if (stream)
		return caller_set_stream(caller, err);
	if (json_need_object(caller->request, "", "args", &args, err) < 0 ||
	    json_format(args, &caller->body, err) < 0)
		return -1;
	(void)curl_easy_setopt(caller->easy, CURLOPT_POSTFIELDSIZE, (long)caller->body.len);
	(void)curl_easy_setopt(caller->easy, CURLOPT_POSTFIELDS, caller->body.ptr);
	return caller_add_header(caller, STR("Content-Type: "), STR("application/json"), err);
}

static int caller_prepare(struct caller *caller, int *out_runfd, struct err *err)
{
	struct str token;

	if (json_get_bool(caller->request, "", "raw", &caller->raw, err) < 0 ||
	    json_need_string(caller->request, "", "token", &token, err) < 0 ||
	    caller_set_body(caller, err) < 0 || caller_set_url(caller, err) < 0 ||
	    caller_set_socket(caller, out_runfd, err) < 0 || caller_set_etag(caller, err) < 0 ||
	    caller_add_header(caller, STR("Authorization: Bearer "), token, err) < 0)
		return -1;
	(void)curl_easy_setopt(caller->easy, CURLOPT_HTTPHEADER, caller->headers);
	(void)curl_easy_setopt(caller->easy, CURLOPT_CONNECTTIMEOUT_MS, CALL_CONNECT_MS);
	(void)curl_easy_setopt(caller->easy, CURLOPT_WRITEFUNCTION, caller_hear);
	(void)curl_easy_setopt(caller->easy, CURLOPT_WRITEDATA, caller);
	(void)curl_easy_setopt(caller->easy, CURLOPT_NOSIGNAL, 1L);
	return 0;
}

/* Run the transfer to its end, or until our asker leaves. */
static int caller_transfer(struct caller *caller, CURLcode *out, struct err *err)
{
	int running = 1;
	int left;
	CURLMsg *message;

	(void)curl_multi_add_handle(caller->multi, caller->easy);
	while (curl_multi_perform(caller->multi, &running) == CURLM_OK && running > 0) {
		struct curl_waitfd asker = {.fd = WORK_FD_ASKER, .events = CURL_WAIT_POLLIN};

		(void)curl_multi_poll(caller->multi, &asker, 1, CALL_POLL_MS, NULL);
		if (asker.revents)
			return err_set(err, ERR_CANCELLED, "cancelled");
	}
	message = curl_multi_info_read(caller->multi, &left);
	*out = message ? message->data.result : CURLE_FAILED_INIT;
	return 0;
}

/* The daemon's words, as our error; a registry's are in a list. */
static int caller_refused(const struct caller *caller, long status, struct err *err)
{
	AUTO(json) json_t *value = NULL;
	const json_t *error = NULL;
	struct str code = {0};
	struct str message = {0};
	struct err ignored;

	if (json_parse(buf_str(&caller->answer), WIRE_PAYLOAD_MAX, &value, &ignored) == 0)
		error = caller->linked ? json_array_get(json_object_get(value, "errors"), 0)
				       : json_object_get(value, "error");
	if (!json_is_object(error) || json_need_string(error, "", "code", &code, &ignored) < 0 ||
	    json_need_string(error, "", "message", &message, &ignored) < 0)
		return err_set(err, ERR_REMOTE, "the daemon answered with status %ld", status);
	return err_set(err, err_kind_of(code.ptr, (int)status), STR_FMT, STR_ARG(message));
}

/* Parse the whole answer as JSON, unless it was passed on as it came. */
static int caller_parse(const struct caller *caller, json_t **out, struct err *err)
{
	if (caller->raw || caller->answer.len == 0) {
		*out = json_object();
		return 0;
	}
	return json_parse(buf_str(&caller->answer), WIRE_PAYLOAD_MAX, out, err);
}

static int caller_parse_tagged(const struct caller *caller, bool known, json_t **out,
			       struct err *err)
{
	struct curl_header *header = NULL;
	json_t *answer = json_null();

	if (!known && caller_parse(caller, &answer, err) < 0)
		return -1;
	(void)curl_easy_header(caller->easy, "ETag", 0, CURLH_HEADER, -1, &header);
	*out = json_pack("{s:s, s:o}", "etag", header ? header->value : "", "answer", answer);
	return 0;
}

static int caller_parse_linked(const struct caller *caller, json_t **out, struct err *err)
{
	struct curl_header *header = NULL;
	json_t *answer;

	if (caller_parse(caller, &answer, err) < 0)
		return -1;
	(void)curl_easy_header(caller->easy, "Link", 0, CURLH_HEADER, -1, &header);
	*out = json_pack("{s:s, s:o}", "link", header ? header->value : "", "answer", answer);
	return 0;
}

static int caller_unreached(const struct caller *caller, CURLcode code, struct err *err)
{
	const char *advice =
		code == CURLE_COULDNT_CONNECT ? "; start it there by hearth serve" : "";
	const json_t *where = json_object_get(caller->request, "url");

	if (!where)
		where = json_object_get(caller->request, "data");
	return err_set(err, ERR_UNAVAILABLE, "ask the daemon of " STR_FMT ": %s%s",
		       STR_ARG(json_str(where)), curl_easy_strerror(code), advice);
}

static int caller_run(struct caller *caller, json_t **out, struct err *err)
{
	auto_close int runfd = -1;
	CURLcode code;
	long status;

	if (caller_prepare(caller, &runfd, err) < 0 || caller_transfer(caller, &code, err) < 0)
		return -1;
	if (caller->failure.kind != ERR_NONE) {
		*err = caller->failure;
		return -1;
	}
	if (code != CURLE_OK)
		return caller_unreached(caller, code, err);
	status = caller_status(caller);
	if (status / 100 != 2 && !(status == 304 && caller->tagged))
		return caller_refused(caller, status, err);
	if (caller->linked)
		return caller_parse_linked(caller, out, err);
	return caller->tagged ? caller_parse_tagged(caller, status == 304, out, err)
			      : caller_parse(caller, out, err);
}

static int caller_receive(struct caller *caller, struct err *err)
{
	auto_buf struct buf payload = BUF_WIPED(WIRE_PAYLOAD_MAX);

	caller->easy = curl_easy_init();
	caller->multi = curl_multi_init();
	if (!caller->easy || !caller->multi)
		abort();
	if (work_receive(&payload, err) < 0)
		return -1;
	return json_parse(buf_str(&payload), WIRE_PAYLOAD_MAX, &caller->request, err);
}

int call_serve(void)
{
	AUTO(caller)
	struct caller caller = {.body = BUF_INIT(WIRE_PAYLOAD_MAX),
				.answer = BUF_INIT(WIRE_PAYLOAD_MAX)};
	AUTO(json) json_t *answer = NULL;
	struct err err = {0};

	if (caller_receive(&caller, &err) < 0 || caller_run(&caller, &answer, &err) < 0) {
		AUTO(json) json_t *why = wire_error(&err, 0);

		return wire_send_json(WORK_FD_ASKER, WIRE_ERROR, why, &err) < 0 ? 2 : 1;
	}
	return wire_send_json(WORK_FD_ASKER, WIRE_RESULT, answer, &err) < 0 ? 1 : 0;
}
