/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/remote_priv.h"

#include "layers/base/clock.h"
#include "registry/hub.h"
#include "registry/link_priv.h"
#include "registry/refusal_priv.h"
#include "registry/url_priv.h"

#include <stdio.h>

struct remote {
	struct remote_spec spec;
	struct auth *auth;
	struct warnings warnings;
	bool local;                 /* the registry is this host: no proxy */
	bool guessed;               /* nobody said which scheme a local one speaks */
	atomic_bool secure;         /* https */
	atomic_int nearness;        /* where the registry is, by its name and its answers */
	atomic_llong not_before_ms; /* the registry's own word, for all threads */
};

static void remote_warn(void *ctx, struct str text)
{
	const struct remote *remote = ctx;
	auto_buf struct buf said = BUF_INIT(WARNINGS_BYTES_MAX + URL_HOST_MAX);
	struct err full;

	if (buf_addf(&said, &full, STR_FMT " says: " STR_FMT, STR_ARG(remote->spec.host),
		     STR_ARG(text)) == 0)
		remote->spec.warn(remote->spec.warn_ctx, buf_str(&said));
}

int remote_open(const struct remote_spec *spec, struct remote **out, struct err *err)
{
	struct remote *remote = calloc(1, sizeof(*remote));
	struct auth_spec auth = {.path = spec->path,
				 .actions = spec->push ? "pull,push" : "pull",
				 .from = spec->from,
				 .user = spec->user,
				 .password = spec->password,
				 .retry = {.tries = spec->tries, .base_ms = spec->retry_base_ms}};
	struct url url;
	char base[URL_HOST_MAX + 64];

	if (!remote)
		abort();
	remote->spec = *spec;
	remote->warnings = (struct warnings){
		.fn = spec->warn ? remote_warn : NULL, .ctx = remote, .lock = LOCK_INIT};
	(void)snprintf(base, sizeof(base), "http://" STR_FMT "/", STR_ARG(spec->host));
	if (url_parse(base, &url, err) < 0 || auth_open(&auth, &remote->auth, err) < 0) {
		remote_close(remote);
		return -1;
	}
	remote->local = url_host_is_loopback(url.host);
	remote->guessed = remote->local && !spec->plain_http && !spec->ca_file;
	atomic_init(&remote->secure, !spec->plain_http && !remote->guessed);
	atomic_init(&remote->nearness, url_host_nearness(url.host));
	atomic_init(&remote->not_before_ms, 0);
	*out = remote;
	return 0;
}

void remote_close(struct remote *remote)
{
	if (!remote)
		return;
	auth_close(remote->auth);
	free(remote);
}

int remote_connect(struct remote *remote, struct http **out, struct err *err)
{
	const struct http_options options = {.ca_file = remote->spec.ca_file,
					     .stall_ms = remote->spec.stall_ms,
					     .document_ms = remote->spec.document_ms,
					     .cancel = remote->spec.cancel,
					     .cancel_too = remote->spec.cancel_too};

	return http_open(&options, out, err);
}

int remote_base(const struct remote *remote, struct buf *out, struct err *err)
{
	struct str host = remote->spec.host;

	if (str_equal(host, STR(HUB_HOST)))
		host = STR(HUB_REGISTRY);
	buf_clear(out);
	return buf_addf(out, err, "%s://" STR_FMT "/",
			atomic_load(&remote->secure) ? "https" : "http", STR_ARG(host));
}

/* One request on its way through redirects. */
struct remote_way {
	struct buf url;
	struct url registry; /* whose credentials may be sent */
	bool strayed;        /* another host was met */
	bool renewed;        /* a 401 was answered once */
	int redirects;
};

static void remote_way_done(struct remote_way *way)
{
	buf_done(&way->url);
}

/*
 * Nobody is sent to a place of ours by who is not as near: he wants what only we
 * can do. To an address of the link nobody sends us at all.
 */
static int remote_check_host(const struct remote *remote, const struct remote_way *way,
			     const struct url *to, struct err *err)
{
	if (strcmp(to->host, way->registry.host) == 0 ||
	    (!url_host_is_link_local(to->host) &&
	     (int)url_host_nearness(to->host) <= atomic_load(&remote->nearness)))
		return 0;
	return err_set(err, ERR_REMOTE, "redirected to %s, which is no host of a registry",
		       to->host);
}

/* The URL that a registry's answer gave: its proof is still sent to that registry only. */
static int remote_way_start_at(const struct remote *remote, const char *text,
			       struct remote_way *way, struct err *err)
{
	struct url url;

	if (url_parse(text, &url, err) < 0)
		return -1;
	if (way->registry.secure && !url.secure)
		return err_set(err, ERR_REMOTE, "sent from HTTPS to plain HTTP at %s", url.host);
	if (remote_check_host(remote, way, &url, err) < 0)
		return -1;
	way->strayed = !url_same_origin(&url, &way->registry);
	buf_clear(&way->url);
	return buf_add(&way->url, str_of(text), err);
}

static int remote_way_start(const struct remote *remote, const struct remote_request *request,
			    struct remote_way *way, struct err *err)
{
	if (remote_base(remote, &way->url, err) < 0 ||
	    url_parse(way->url.ptr, &way->registry, err) < 0)
		return -1;
	way->strayed = false;
	way->redirects = 0;
	if (request->url)
		return remote_way_start_at(remote, request->url, way, err);
	if ((request->kind ? buf_addf(&way->url, err, "v2/" STR_FMT "/%s/%s",
				      STR_ARG(remote->spec.path), request->kind, request->name)
			   : buf_addf(&way->url, err, "v2/%s", request->name)) < 0)
		return -1;
	return remote->spec.source.len > 0
		       ? url_add_query(&way->url, "ns", remote->spec.source, err)
		       : 0;
}

/* A redirect; for other methods than GET and HEAD only one that keeps method and body. */
static bool is_redirect(const struct remote_request *request, const struct http_reply *response)
{
	long status = response->status;

	if (!response->location[0])
		return false;
	if (status == 307 || status == 308)
		return true;
	return (request->method == HTTP_GET || request->method == HTTP_HEAD) &&
	       (status == 301 || status == 302 || status == 303);
}

/* What comes is judged by its digest, whichever way that is. */
static bool is_verified(const struct remote_request *request)
{
	return request->method == HTTP_GET && request->name &&
	       str_starts(str_of(request->name), STR("sha256:"));
}

/* Go where the answer points. Once away from the registry, its proof stays behind. */
static int remote_way_follow(const struct remote *remote, struct remote_way *way,
			     const struct remote_request *request,
			     const struct http_reply *response, struct err *err)
{
	struct url from;
	struct url to;

	if (++way->redirects > REMOTE_REDIRECTS_MAX)
		return err_set(err, ERR_REMOTE, "more than %d redirects", REMOTE_REDIRECTS_MAX);
	if (url_parse(way->url.ptr, &from, err) < 0 || url_parse(response->location, &to, err) < 0)
		return -1;
	if (from.secure && !to.secure && !is_verified(request))
		return err_set(err, ERR_REMOTE, "redirected from HTTPS to plain HTTP at %s",
			       to.host);
	if (remote_check_host(remote, way, &to, err) < 0)
		return -1;
	if (!url_same_origin(&to, &way->registry))
		way->strayed = true;
	buf_clear(&way->url);
	return buf_add(&way->url, str_of(response->location), err);
}

static int remote_send_one(struct remote *remote, struct http *http, const struct remote_way *way,
			   const struct remote_request *request, const struct grant *grant,
			   struct http_reply *response, struct err *err)
{
	struct http_call send = {.url = way->url.ptr,
				 .method = request->method,
				 .document = request->document,
				 .accept = request->accept,
				 .range = request->range,
				 .content_type = request->content_type,
				 .content_range = request->content_range,
				 .body = request->body,
				 .upload = request->upload};
	int64_t wait_ms = atomic_load(&remote->not_before_ms) - clock_monotonic_ms();
	struct url url;

	if (url_parse(way->url.ptr, &url, err) < 0)
		return -1;
	send.direct = url_host_is_loopback(url.host);
	if (!way->strayed) {
		send.bearer = &grant->token;
		send.user = grant->user;
		send.password = grant->password;
	}
	if (wait_ms > 0 && http_wait(http, wait_ms, err) < 0)
		return -1;
	if (http_send(http, &send, response, err) < 0)
		return -1;
	if (way->strayed)
		return 0;
	if (response->nearness > atomic_load(&remote->nearness))
		atomic_store(&remote->nearness, response->nearness);
	warnings_hear(&remote->warnings, response);
	return 0;
}

/* A server of this host that turns out to want TLS gets it, whichever thread notices. */
static bool remote_guess_again(struct remote *remote, const struct remote_way *way,
			       const struct http_reply *response)
{
	struct str body = buf_str(&response->error_body);

	if (!remote->guessed || response->status != 400 || way->registry.secure ||
	    !memmem(body.ptr, body.len, "HTTPS", 5))
		return false;
	atomic_store(&remote->secure, true);
	return true;
}

/*
 * 1 the way goes on, 0 *response is the answer, -1. A 401 is answered once: with
 * a token where there was none, with a new one where the old one was refused.
 */
static int remote_step(struct remote *remote, struct http *http, struct remote_way *way,
		       const struct remote_request *request, struct http_reply *response,
		       struct err *err)
{
	auto_buf struct buf base = BUF_INIT(HTTP_URL_MAX);
	auto_grant struct grant grant = {0};

	if (auth_get(remote->auth, http, &grant, err) < 0 ||
	    remote_send_one(remote, http, way, request, &grant, response, err) < 0)
		return -1;
	if (is_redirect(request, response))
		return remote_way_follow(remote, way, request, response, err) < 0 ? -1 : 1;
	if (remote_guess_again(remote, way, response))
		return remote_way_start(remote, request, way, err) < 0 ? -1 : 1;
	if (response->status != 401 || way->strayed || way->renewed)
		return 0;
	way->renewed = true;
	if (remote_base(remote, &base, err) < 0 ||
	    auth_renew(remote->auth, http, base.ptr, response, &grant, err) < 0)
		return -1;
	return remote_way_start(remote, request, way, err) < 0 ? -1 : 1;
}

int remote_try(struct remote *remote, struct http *http, const struct remote_request *request,
	       struct http_reply *response, bool *out_strayed, struct err *err)
{
	struct remote_way way = {.url = BUF_INIT(HTTP_URL_MAX)};
	int result;

	response->worth_retrying = false;
	result = remote_way_start(remote, request, &way, err);
	if (result == 0) {
		do {
			result = remote_step(remote, http, &way, request, response, err);
		} while (result == 1);
	}
	*out_strayed = way.strayed;
	remote_way_done(&way);
	return result;
}

/* The registry asked everyone to wait: the other threads hear of it here. */
static void remote_hold_back(struct remote *remote, const struct http_reply *response)
{
	int64_t ms = response->retry_after_ms;

	if (ms <= 0 || (response->status != 429 && response->status != 503))
		return;
	atomic_store(&remote->not_before_ms, clock_monotonic_ms() + ms);
}

int remote_refused(const struct remote *remote, const struct http_reply *response, const char *what,
		   struct err *err)
{
	return refusal_explain(response->status, buf_str(&response->error_body),
			       auth_has_credentials(remote->auth), what, err);
}

bool remote_failed(struct remote *remote, const struct http_reply *response, int result,
		   bool strayed, const char *what, struct err *err)
{
	if (result < 0)
		return response->worth_retrying;
	remote_hold_back(remote, response);
	(void)remote_refused(remote, response, what, err);
	/* A signed URL that has expired; the registry will give another. */
	return retry_status(response->status) ||
	       (strayed && (response->status == 401 || response->status == 403));
}

bool remote_was_asked(const struct remote *remote)
{
	return auth_was_asked(remote->auth);
}

struct retry remote_retry(const struct remote *remote)
{
	return (struct retry){.tries = remote->spec.tries, .base_ms = remote->spec.retry_base_ms};
}

int remote_send(struct remote *remote, struct http *http, const struct remote_request *request,
		const char *what, struct http_reply *response, struct err *err)
{
	struct retry retry = remote_retry(remote);

	for (;;) {
		bool strayed;
		int result = remote_try(remote, http, request, response, &strayed, err);

		if (result == 0 && response->status >= 200 && response->status < 300)
			return 0;
		if (!remote_failed(remote, response, result, strayed, what, err))
			return result;
		if (retry_wait(&retry, http, response->retry_after_ms, err) < 0)
			return -1;
	}
}

int remote_get(struct remote *remote, struct http *http, const struct remote_request *request,
	       const char *what, struct buf *out, struct http_reply *response, struct err *err)
{
	struct buf_sink body = BUF_SINK(out);
	struct remote_request gathered = *request;
	struct retry retry = remote_retry(remote);

	gathered.method = HTTP_GET;
	gathered.document = true;
	gathered.body = &body.sink;
	for (;;) {
		bool strayed;
		int result;

		buf_clear(out);
		result = remote_try(remote, http, &gathered, response, &strayed, err);
		if (result == 0 && response->status == 200)
			return 0;
		if (!remote_failed(remote, response, result, strayed, what, err) ||
		    retry_wait(&retry, http, response->retry_after_ms, err) < 0)
			return -1;
	}
}

int remote_next_page(const struct remote *remote, const struct remote_request *request,
		     const struct http_reply *response, struct buf *out, struct err *err)
{
	struct str link = link_find(http_header(response, "Link"), STR("next"));
	struct remote_way way = {.url = BUF_INIT(HTTP_URL_MAX)};
	int result;

	if (link.len == 0)
		return 0;
	result = remote_way_start(remote, request, &way, err);
	if (result == 0) {
		buf_clear(out);
		result = url_join(way.url.ptr, link, out, err);
	}
	remote_way_done(&way);
	return result < 0 ? -1 : 1;
}
