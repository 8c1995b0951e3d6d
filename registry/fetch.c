/* SPDX-License-Identifier: Apache-2.0 */
#define LOG_MODULE "registry"
#include "registry/fetch_priv.h"

#include "layers/base/clock.h"
#include "layers/base/log.h"
#include "registry/range_priv.h"
#include "registry/refusal_priv.h"
#include "registry/url_priv.h"

#include <inttypes.h>
#include <stdio.h>

/* All of them, always: registries answer 404 for a type that is not listed. */
#define FETCH_ACCEPT                                                                              \
	MEDIA_OCI_MANIFEST ", " MEDIA_OCI_INDEX ", " MEDIA_DOCKER_MANIFEST ", " MEDIA_DOCKER_LIST \
			   ", application/vnd.docker.distribution.manifest.v1+prettyjws, "        \
			   "application/vnd.docker.distribution.manifest.v1+json, */*"

struct fetch {
	struct fetch_spec spec;
	struct auth *auth;
	bool local;                 /* the registry is this host: no proxy */
	bool guessed;               /* nobody said which scheme a local one speaks */
	atomic_bool secure;         /* https */
	atomic_llong not_before_ms; /* the registry's own word, for all threads */
};

int fetch_open(const struct fetch_spec *spec, struct fetch **out, struct err *err)
{
	struct fetch *fetch = calloc(1, sizeof(*fetch));
	struct auth_spec auth = {.path = spec->path,
				 .user = spec->user,
				 .password = spec->password,
				 .retry = {.tries = spec->tries, .base_ms = spec->retry_base_ms}};
	struct url url;
	char base[URL_HOST_MAX + 64];

	if (!fetch)
		abort();
	fetch->spec = *spec;
	(void)snprintf(base, sizeof(base), "http://" STR_FMT "/", STR_ARG(spec->host));
	if (url_parse(base, &url, err) < 0 || auth_open(&auth, &fetch->auth, err) < 0) {
		fetch_close(fetch);
		return -1;
	}
	fetch->local = url_host_is_loopback(url.host);
	fetch->guessed = fetch->local && !spec->plain_http && !spec->ca_file;
	atomic_init(&fetch->secure, !spec->plain_http && !fetch->guessed);
	atomic_init(&fetch->not_before_ms, 0);
	*out = fetch;
	return 0;
}

void fetch_close(struct fetch *fetch)
{
	if (!fetch)
		return;
	auth_close(fetch->auth);
	free(fetch);
}

int fetch_connect(struct fetch *fetch, struct http **out, struct err *err)
{
	const struct http_options options = {.ca_file = fetch->spec.ca_file,
					     .stall_ms = fetch->spec.stall_ms,
					     .cancel = fetch->spec.cancel,
					     .cancel_too = fetch->spec.cancel_too};

	return http_open(&options, out, err);
}

/* "https://HOST/"; docker.io is a name of names, its registry another. */
static int fetch_base(const struct fetch *fetch, struct buf *out, struct err *err)
{
	struct str host = fetch->spec.host;

	if (str_equal(host, STR("docker.io")))
		host = STR("registry-1.docker.io");
	buf_clear(out);
	return buf_addf(out, err, "%s://" STR_FMT "/",
			atomic_load(&fetch->secure) ? "https" : "http", STR_ARG(host));
}

/* What is asked for, before scheme, proof and redirects. */
struct fetch_request {
	const char *kind; /* "manifests", "blobs" */
	const char *name; /* a tag or a digest */
	bool head;
	bool verified; /* we know the digest, so the way there need not be safe */
	const char *accept;
	const char *range;
	struct sink *body;
};

/* One request on its way through redirects. */
struct fetch_way {
	struct buf url;
	struct url registry; /* whose credentials may be sent */
	bool strayed;        /* another host was met */
	bool renewed;        /* a 401 was answered once */
	int redirects;
};

static void fetch_way_done(struct fetch_way *way)
{
	buf_done(&way->url);
}

static int fetch_way_start(const struct fetch *fetch, const struct fetch_request *request,
			   struct fetch_way *way, struct err *err)
{
	if (fetch_base(fetch, &way->url, err) < 0 ||
	    url_parse(way->url.ptr, &way->registry, err) < 0)
		return -1;
	way->strayed = false;
	way->redirects = 0;
	return buf_addf(&way->url, err, "v2/" STR_FMT "/%s/%s", STR_ARG(fetch->spec.path),
			request->kind, request->name);
}

static bool is_redirect(const struct http_response *response)
{
	long status = response->status;

	return response->redirect[0] &&
	       (status == 301 || status == 302 || status == 303 || status == 307 || status == 308);
}

/* Go where the answer points. Once away from the registry, its proof stays behind. */
static int fetch_way_follow(struct fetch_way *way, const struct http_response *response,
			    bool verified, struct err *err)
{
	struct url from;
	struct url to;

	if (++way->redirects > FETCH_REDIRECTS_MAX)
		return err_set(err, ERR_REMOTE, "more than %d redirects", FETCH_REDIRECTS_MAX);
	if (url_parse(way->url.ptr, &from, err) < 0 || url_parse(response->redirect, &to, err) < 0)
		return -1;
	if (from.secure && !to.secure && !verified)
		return err_set(err, ERR_REMOTE, "redirected from HTTPS to plain HTTP at %s",
			       to.host);
	if (!url_same_origin(&to, &way->registry))
		way->strayed = true;
	buf_clear(&way->url);
	return buf_add(&way->url, str_of(response->redirect), err);
}

static int fetch_send_one(struct fetch *fetch, struct http *http, const struct fetch_way *way,
			  const struct fetch_request *request, const struct grant *grant,
			  struct http_response *response, struct err *err)
{
	struct http_request send = {.url = way->url.ptr,
				    .head = request->head,
				    .accept = request->accept,
				    .range = request->range,
				    .body = request->body};
	int64_t wait_ms = atomic_load(&fetch->not_before_ms) - clock_monotonic_ms();
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
	return http_send(http, &send, response, err);
}

/* A server of this host that turns out to want TLS gets it. */
static bool fetch_guess_again(struct fetch *fetch, const struct http_response *response)
{
	struct str body = buf_str(&response->error_body);

	if (!fetch->guessed || response->status != 400 || atomic_load(&fetch->secure) ||
	    !memmem(body.ptr, body.len, "HTTPS", 5))
		return false;
	atomic_store(&fetch->secure, true);
	return true;
}

/*
 * 1 the way goes on, 0 *response is the answer, -1. A 401 is answered once: with
 * a token where there was none, with a new one where the old one was refused.
 */
static int fetch_step(struct fetch *fetch, struct http *http, struct fetch_way *way,
		      const struct fetch_request *request, struct http_response *response,
		      struct err *err)
{
	auto_buf struct buf base = BUF_INIT(HTTP_URL_MAX);
	auto_grant struct grant grant = {0};

	if (auth_get(fetch->auth, http, &grant, err) < 0 ||
	    fetch_send_one(fetch, http, way, request, &grant, response, err) < 0)
		return -1;
	if (is_redirect(response))
		return fetch_way_follow(way, response, request->verified, err) < 0 ? -1 : 1;
	if (fetch_guess_again(fetch, response))
		return fetch_way_start(fetch, request, way, err) < 0 ? -1 : 1;
	if (response->status != 401 || way->strayed || way->renewed)
		return 0;
	way->renewed = true;
	if (fetch_base(fetch, &base, err) < 0 ||
	    auth_renew(fetch->auth, http, base.ptr, response, &grant, err) < 0)
		return -1;
	return fetch_way_start(fetch, request, way, err) < 0 ? -1 : 1;
}

/* One try: 0 and the last answer, whatever its status; -1 where none came. */
static int fetch_try(struct fetch *fetch, struct http *http, const struct fetch_request *request,
		     struct http_response *response, bool *out_strayed, struct err *err)
{
	struct fetch_way way = {.url = BUF_INIT(HTTP_URL_MAX)};
	int result;

	response->worth_retrying = false;
	result = fetch_way_start(fetch, request, &way, err);
	if (result == 0) {
		do {
			result = fetch_step(fetch, http, &way, request, response, err);
		} while (result == 1);
	}
	*out_strayed = way.strayed;
	fetch_way_done(&way);
	return result;
}

/* The registry asked everyone to wait: the other threads hear of it here. */
static void fetch_hold_back(struct fetch *fetch, const struct http_response *response)
{
	int64_t ms = response->retry_after_ms;

	if (ms <= 0 || (response->status != 429 && response->status != 503))
		return;
	atomic_store(&fetch->not_before_ms, clock_monotonic_ms() + ms);
}

/* After an answer that is no success, or none: fill *err and say whether to try again. */
static bool fetch_failed(struct fetch *fetch, const struct http_response *response, int result,
			 bool strayed, const char *what, struct err *err)
{
	if (result < 0)
		return response->worth_retrying;
	fetch_hold_back(fetch, response);
	(void)refusal_explain(response->status, buf_str(&response->error_body),
			      auth_has_credentials(fetch->auth), what, err);
	/* A signed URL that has expired; the registry will give another. */
	return retry_status(response->status) ||
	       (strayed && (response->status == 401 || response->status == 403));
}

static struct retry fetch_retry(const struct fetch *fetch)
{
	return (struct retry){.tries = fetch->spec.tries, .base_ms = fetch->spec.retry_base_ms};
}

int fetch_head(struct fetch *fetch, struct http *http, const char *name, struct digest *out,
	       struct err *err)
{
	const struct fetch_request request = {
		.kind = "manifests", .name = name, .head = true, .accept = FETCH_ACCEPT};
	auto_http_response struct http_response response = {0};
	struct err ignored;
	bool strayed;
	int result = fetch_try(fetch, http, &request, &response, &strayed, err);

	if (result < 0)
		return response.worth_retrying ? 0 : -1;
	if (response.status == 200)
		return digest_parse(http_header(&response, "Docker-Content-Digest"), out,
				    &ignored) == 0 &&
		       out->algorithm == DIGEST_SHA256;
	fetch_hold_back(fetch, &response);
	/* A signed URL refuses HEAD, some registries do not know it: only these two are meant. */
	if (strayed || (response.status != 404 && response.status != 401))
		return 0;
	return refusal_explain(response.status, STR(""), auth_has_credentials(fetch->auth), name,
			       err);
}

/* Without its parameters: "; charset=utf-8" says nothing about JSON. */
static struct str media_type_of(const struct http_response *response)
{
	struct str type = http_header(response, "Content-Type");
	const char *end = type.len ? memchr(type.ptr, ';', type.len) : NULL;

	if (end)
		type.len = (size_t)(end - type.ptr);
	while (type.len > 0 && type.ptr[type.len - 1] == ' ')
		type.len--;
	return type;
}

/* What the registry said of a manifest beside its bytes has to agree with them. */
static int fetch_check_manifest(const struct http_response *response, struct str text,
				const struct digest *digest, struct err *err)
{
	AUTO(json) json_t *document = NULL;
	struct str sent = media_type_of(response);
	struct digest claimed;
	struct str inner;
	struct err ignored;

	if (digest_parse(http_header(response, "Docker-Content-Digest"), &claimed, &ignored) == 0 &&
	    claimed.algorithm == digest->algorithm && !digest_equal(&claimed, digest))
		return err_set(err, ERR_CORRUPT,
			       "the manifest is not what the registry says its digest is");
	if (json_parse(text, MANIFEST_MAX, &document, &ignored) < 0 || !json_is_object(document) ||
	    json_get_string(document, "", "mediaType", &inner, &ignored) <= 0)
		return 0; /* judged where it is read */
	if (!str_equal(inner, sent) &&
	    (str_equal(sent, STR(MEDIA_OCI_MANIFEST)) || str_equal(sent, STR(MEDIA_OCI_INDEX)) ||
	     str_equal(sent, STR(MEDIA_DOCKER_MANIFEST)) ||
	     str_equal(sent, STR(MEDIA_DOCKER_LIST))))
		return err_set(err, ERR_CORRUPT,
			       "the manifest says it is " STR_FMT ", the registry " STR_FMT,
			       STR_ARG(inner), STR_ARG(sent));
	return 0;
}

int fetch_manifest(struct fetch *fetch, struct http *http, const char *name, struct buf *out,
		   struct digest *out_digest, struct err *err)
{
	struct buf_sink body = BUF_SINK(out);
	const struct fetch_request request = {.kind = "manifests",
					      .name = name,
					      .verified = strchr(name, ':') != NULL,
					      .accept = FETCH_ACCEPT,
					      .body = &body.sink};
	auto_http_response struct http_response response = {0};
	struct retry retry = fetch_retry(fetch);

	for (;;) {
		bool strayed;
		int result;

		buf_clear(out);
		result = fetch_try(fetch, http, &request, &response, &strayed, err);
		if (result == 0 && response.status == 200)
			break;
		if (!fetch_failed(fetch, &response, result, strayed, name, err) ||
		    retry_wait(&retry, http, response.retry_after_ms, err) < 0)
			return -1;
	}
	digest_of(buf_str(out), out_digest);
	return fetch_check_manifest(&response, buf_str(out), out_digest, err);
}

/* A blob on its way: how far we are, over all tries. */
struct blob_body {
	struct sink sink;
	struct sink *out;
	const struct descriptor *blob;
	const struct http_response *response;
	uint64_t done; /* bytes that `out` has */
	uint64_t skip; /* bytes of this answer that `out` has already */
	bool begun;    /* this answer's headers were judged */
	bool no_range; /* the registry cannot continue in the middle */
};

static int blob_body_wrong_size(const struct blob_body *body, uint64_t size, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "blob of %" PRIu64 " bytes, the manifest says %" PRIu64,
		       size, body->blob->size);
}

/* Where this answer starts, and whether it is of a blob of the right size. */
static int blob_body_begin(struct blob_body *body, struct err *err)
{
	struct range range;
	uint64_t length;

	body->begun = true;
	if (body->response->status == 200) {
		body->skip = body->done;
		if (range_parse_number(http_header(body->response, "Content-Length"), &length) &&
		    length != body->blob->size)
			return blob_body_wrong_size(body, length, err);
		return 0;
	}
	body->skip = 0;
	body->no_range = true; /* unless this answer is fine */
	if (range_parse(http_header(body->response, "Content-Range"), &range, err) < 0)
		return -1;
	if (range.size != RANGE_SIZE_UNKNOWN && range.size != body->blob->size)
		return blob_body_wrong_size(body, range.size, err);
	if (range.first != body->done)
		return err_set(err, ERR_REMOTE,
			       "asked for bytes from %" PRIu64 ", got them from %" PRIu64,
			       body->done, range.first);
	body->no_range = false;
	return 0;
}

static int blob_body_write(struct sink *sink, struct str bytes, struct err *err)
{
	struct blob_body *body = container_of(sink, struct blob_body, sink);

	if (!body->begun && blob_body_begin(body, err) < 0)
		return -1;
	if (body->skip >= bytes.len) {
		body->skip -= bytes.len;
		return 0;
	}
	bytes = (struct str){bytes.ptr + body->skip, bytes.len - body->skip};
	body->skip = 0;
	if (bytes.len > body->blob->size - body->done)
		return err_set(err, ERR_CORRUPT,
			       "blob of more than the %" PRIu64 " bytes that the manifest says",
			       body->blob->size);
	if (body->out->write(body->out, bytes, err) < 0)
		return -1;
	body->done += bytes.len;
	return 0;
}

/*
 * One try: 1 the blob is whole, 0 it may become so by another try (*err says
 * what was wrong with this one), -1.
 */
static int fetch_blob_once(struct fetch *fetch, struct http *http, const char *name,
			   struct blob_body *body, struct http_response *response, struct err *err)
{
	char range[64];
	struct fetch_request request = {
		.kind = "blobs", .name = name, .verified = true, .body = &body->sink};
	bool strayed;
	int result;

	(void)snprintf(range, sizeof(range), "%" PRIu64 "-%" PRIu64, body->done,
		       body->blob->size - 1);
	request.range = body->done > 0 && !body->no_range ? range : NULL;
	body->begun = false;
	result = fetch_try(fetch, http, &request, response, &strayed, err);
	if (result == 0 && (response->status == 200 || response->status == 206)) {
		if (body->done == body->blob->size)
			return 1;
		return err_set(err, ERR_REMOTE,
			       "the blob ends after %" PRIu64 " of %" PRIu64 " bytes", body->done,
			       body->blob->size) +
		       1;
	}
	if (response->status == 416 && request.range) {
		body->no_range = true;
		return err_set(err, ERR_REMOTE, "the registry cannot continue a blob") + 1;
	}
	/* A range that was answered wrongly is asked for no more; the whole is. */
	if (result < 0 && err->kind == ERR_REMOTE && request.range && body->no_range)
		return 0;
	return fetch_failed(fetch, response, result, strayed, name, err) ? 0 : -1;
}

int fetch_blob(struct fetch *fetch, struct http *http, const struct descriptor *blob,
	       struct sink *out, struct err *err)
{
	auto_http_response struct http_response response = {0};
	struct blob_body body = {
		.sink = {blob_body_write}, .out = out, .blob = blob, .response = &response};
	struct retry retry = fetch_retry(fetch);
	char name[DIGEST_TEXT_MAX];

	digest_format(&blob->digest, name);
	for (;;) {
		uint64_t before = body.done;
		int result = fetch_blob_once(fetch, http, name, &body, &response, err);

		if (result != 0)
			return result < 0 ? -1 : 0;
		if (body.done - before >= FETCH_PROGRESS_BYTES)
			retry.failures = 0;
		if (retry_wait(&retry, http, response.retry_after_ms, err) < 0)
			return -1;
		log_debug("blob is continued digest=%s at=%" PRIu64, name, body.done);
	}
}
