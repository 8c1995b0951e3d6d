/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upload.c - one blob on its way up.
 *
 *	1 POST uploads/             a session: the Location of its answer; or the one
 *	                            that a mount became
 *	2 PUT LOCATION?digest=      all of it                         whole
 *	2 PATCH LOCATION ...        the rest, or a chunk at a time    continued, or too large whole
 *	3 PUT LOCATION?digest=      nothing more
 *
 * After a failure GET LOCATION says how much arrived. A session that the
 * registry does not know any more, or says nothing useful about, is given up
 * for a new one: it expires on the other side.
 */
#define LOG_MODULE "registry"
#include "registry/upload_priv.h"

#include "layers/base/log.h"
#include "layers/blob.h"
#include "registry/range_priv.h"
#include "registry/text_body_priv.h"
#include "registry/url_priv.h"

#include <inttypes.h>
#include <stdio.h>

#define UPLOAD_TYPE "application/octet-stream"

/* A blob's bytes from an offset on, as often as they are wanted. */
struct upload_body {
	struct http_upload http;
	const struct upload_spec *spec;
	struct blob_reader *reader; /* owned */
	uint64_t from;
	uint64_t skip; /* to come to `from` */
	uint64_t lent; /* up to here in the blob */
};

static int upload_body_read(struct source *source, struct str *out, struct err *err)
{
	struct upload_body *body = container_of(source, struct upload_body, http.source);
	struct str bytes;
	int more;

	do {
		more = blob_reader_next(body->reader, &bytes, NULL, err);
		if (more <= 0)
			return more;
		if (body->skip >= bytes.len) {
			body->skip -= bytes.len;
			bytes.len = 0;
		}
	} while (bytes.len == 0);
	*out = str_skip(bytes, body->skip);
	body->skip = 0;
	if (body->spec->progress)
		body->spec->progress(body->spec->ctx, body->lent);
	body->lent += out->len;
	return 1;
}

static int upload_body_rewind(struct http_upload *http, struct err *err)
{
	struct upload_body *body = container_of(http, struct upload_body, http);

	blob_reader_close(steal_ptr(&body->reader));
	body->skip = body->lent = body->from;
	return blob_reader_open(body->spec->store, &body->spec->digest, &body->reader, err);
}

/* One blob's upload, over all tries. */
struct upload {
	const struct upload_spec *spec;
	struct remote *remote;
	struct http *http;
	struct http_reply response;
	struct upload_body body;
	struct buf location; /* of the session; empty where there is none */
	bool untouched;      /* nothing was sent to it yet */
	uint64_t kept;       /* bytes that the registry has */
	uint64_t chunk;      /* at most so many at once; 0 for all */
};

/* Without the scheme, as some write it; the registry's own host comes first. */
static bool upload_location_is_bare(const struct url *registry, struct str text)
{
	size_t len = strlen(registry->host);

	return text.len > len && strncmp(text.ptr, registry->host, len) == 0 &&
	       (text.ptr[len] == '/' || text.ptr[len] == ':');
}

/*
 * A registry behind a proxy may not know its own URL: it says http:// where we
 * speak HTTPS with it, or leaves out its port. Both are corrected, since they
 * mean the server that we talk to.
 */
static bool upload_location_is_ours(const struct url *registry, const struct url *url)
{
	const unsigned usual = url->secure ? 443 : 80;

	if (strcmp(url->host, registry->host) != 0)
		return false;
	if (registry->secure && !url->secure)
		return true;
	return registry->secure == url->secure && url->port == usual && registry->port != usual;
}

/* What follows the host of an absolute URL. */
static struct str upload_location_path(const char *url)
{
	const char *host = strstr(url, "://");
	const char *path = host ? strchr(host + 3, '/') : NULL;

	return str_of(path ? path : "/");
}

static int upload_locate(const struct remote *remote, const struct http_reply *response,
			 struct buf *out, struct err *err)
{
	auto_buf struct buf base = BUF_INIT(HTTP_URL_MAX);
	struct str text = http_header(response, "Location");
	struct url registry;
	struct url url;

	buf_clear(out);
	if (remote_base(remote, &base, err) < 0 || url_parse(base.ptr, &registry, err) < 0)
		return -1;
	if (upload_location_is_bare(&registry, text))
		return buf_addf(out, err, "%s://" STR_FMT, registry.secure ? "https" : "http",
				STR_ARG(text));
	if (!response->location[0])
		return err_set(err, ERR_REMOTE, "the registry does not say where to upload to");
	if (url_parse(response->location, &url, err) < 0)
		return -1;
	if (upload_location_is_ours(&registry, &url))
		return url_join(base.ptr, upload_location_path(response->location), out, err);
	return buf_add(out, str_of(response->location), err);
}

int upload_is_held(struct remote *remote, struct http *http, const struct digest *digest,
		   struct err *err)
{
	char name[DIGEST_TEXT_MAX];
	const struct remote_request request = {.method = HTTP_HEAD,
					       .kind = "blobs",
					       .name = digest_format(digest, name),
					       .document = true};
	auto_http_reply struct http_reply response = {0};
	bool strayed;
	int result = remote_try(remote, http, &request, &response, &strayed, err);

	if (result == 0 && response.status == 200)
		return 1;
	(void)remote_failed(remote, &response, result, strayed, name, err);
	/* A failure here is no answer: sending will meet it, too, and report it. */
	return err->kind == ERR_CANCELLED ? -1 : 0;
}

int upload_mount(struct remote *remote, struct http *http, const struct digest *digest,
		 struct str from, struct buf *out_session, struct err *err)
{
	auto_buf struct buf name = BUF_INIT(HTTP_URL_MAX);
	struct remote_request request = {.method = HTTP_POST, .kind = "blobs", .document = true};
	auto_http_reply struct http_reply response = {0};
	char text[DIGEST_TEXT_MAX];
	struct err ignored;
	bool strayed;
	int result;

	if (buf_addf(&name, err, "uploads/?mount=%s&from=" STR_FMT, digest_format(digest, text),
		     STR_ARG(from)) < 0)
		return -1;
	request.name = name.ptr;
	result = remote_try(remote, http, &request, &response, &strayed, err);
	if (result == 0 && response.status == 201)
		return 1;
	if (result < 0 && err->kind == ERR_CANCELLED)
		return -1;
	if (result == 0 && response.status == 202 &&
	    upload_locate(remote, &response, out_session, &ignored) < 0)
		buf_clear(out_session); /* the upload asks for another */
	log_debug("blob is not mounted digest=%s status=%ld", text, response.status);
	return 0;
}

/* A registry that wants large chunks gets them, should it come to chunks. */
static uint64_t upload_least_chunk(const struct http_reply *response)
{
	uint64_t least;

	if (!range_parse_number(http_header(response, "OCI-Chunk-Min-Length"), &least) ||
	    least > UPLOAD_CHUNK_MAX)
		return 0;
	return least;
}

/* One request; 0 and *response is final, 1 it may be tried again (*err says why), -1. */
static int upload_ask(struct upload *upload, const struct remote_request *request, struct err *err)
{
	char name[DIGEST_TEXT_MAX];
	bool strayed;
	int result;

	result =
		remote_try(upload->remote, upload->http, request, &upload->response, &strayed, err);
	if (result == 0 && upload->response.status >= 200 && upload->response.status < 300)
		return 0;
	if (remote_failed(upload->remote, &upload->response, result, strayed,
			  digest_format(&upload->spec->digest, name), err))
		return 1;
	return result;
}

static int upload_begin(struct upload *upload, struct err *err)
{
	bool told = upload->spec->digest.algorithm != DIGEST_SHA256; /* who hashes as it comes */
	const struct remote_request request = {.method = HTTP_POST,
					       .kind = "blobs",
					       .name = told ? "uploads/?digest-algorithm=sha512"
							    : "uploads/",
					       .document = true};
	int result = upload_ask(upload, &request, err);
	uint64_t least;

	upload->kept = 0;
	if (result != 0)
		return result;
	if (upload->response.status != 202)
		return remote_refused(upload->remote, &upload->response, "an upload", err);
	least = upload_least_chunk(&upload->response);
	if (upload->chunk > 0 && least > upload->chunk)
		upload->chunk = least;
	return upload_locate(upload->remote, &upload->response, &upload->location, err);
}

static void upload_forget(struct upload *upload)
{
	buf_clear(&upload->location);
	upload->kept = 0;
}

/* Whether it goes on in chunks, where it went whole before. */
static bool upload_divide(struct upload *upload)
{
	if (upload->chunk > 0 || upload->spec->size <= UPLOAD_CHUNK)
		return false;
	upload->chunk = UPLOAD_CHUNK;
	return true;
}

/*
 * How much the registry has of a session that broke: 0 the session goes on or
 * is given up, 1 nobody answered, -1. "0-0" may mean nothing or one byte, and
 * counts as nothing known. Then a proxy may have hung up on a large body
 * instead of refusing it.
 */
static int upload_recall(struct upload *upload, struct err *err)
{
	auto_buf struct buf url = BUF_INIT(HTTP_URL_MAX);
	struct remote_request request = {.method = HTTP_GET, .document = true};
	uint64_t last = 0;
	int result;

	if (buf_add(&url, buf_str(&upload->location), err) < 0)
		return -1;
	request.url = url.ptr;
	result = upload_ask(upload, &request, err);
	if (result < 0 || (result > 0 && upload->response.status == 0))
		return result;
	if (upload->response.status != 204 ||
	    !range_parse_sent(http_header(&upload->response, "Range"), &last) || last == 0 ||
	    last >= upload->spec->size) {
		upload_forget(upload);
		(void)upload_divide(upload);
		return 0;
	}
	upload->kept = last + 1;
	log_debug("upload is continued at=%" PRIu64, upload->kept);
	if (upload->response.location[0])
		return upload_locate(upload->remote, &upload->response, &upload->location, err);
	return 0;
}

/* Send `size` bytes from what is kept on, to where the session is. */
static int upload_send(struct upload *upload, enum http_method method, const char *url,
		       uint64_t size, struct err *err)
{
	char range[64];
	struct remote_request request = {
		.method = method,
		.url = url,
		.content_type = UPLOAD_TYPE,
		.upload = &upload->body.http,
	};

	upload->body.from = upload->kept;
	upload->body.http.size = size;
	(void)snprintf(range, sizeof(range), "%" PRIu64 "-%" PRIu64, upload->kept,
		       upload->kept + size - 1);
	if (method == HTTP_PATCH)
		request.content_range = range;
	return upload_ask(upload, &request, err);
}

/* The next chunk, or all that is left. */
static int upload_patch(struct upload *upload, struct err *err)
{
	uint64_t size = upload->spec->size - upload->kept;
	int result;

	if (upload->chunk > 0 && size > upload->chunk)
		size = upload->chunk;
	result = upload_send(upload, HTTP_PATCH, upload->location.ptr, size, err);
	if (result != 0 || upload->response.status >= 300)
		return result;
	/* Ranges in answers are wrong too often to be read; the digest is checked at the end. */
	upload->kept += size;
	return upload_locate(upload->remote, &upload->response, &upload->location, err);
}

static int upload_close(struct upload *upload, struct err *err)
{
	auto_buf struct buf url = BUF_INIT(HTTP_URL_MAX);
	char name[DIGEST_TEXT_MAX];

	if (buf_add(&url, buf_str(&upload->location), err) < 0 ||
	    url_add_query(&url, "digest", str_of(digest_format(&upload->spec->digest, name)), err) <
		    0)
		return -1;
	return upload_send(upload, HTTP_PUT, url.ptr, upload->spec->size - upload->kept, err);
}

/* Whether an answer that is no success says that the session is at fault, and not the blob. */
static bool upload_is_lost(struct upload *upload, bool fresh)
{
	long status = upload->response.status;

	if (status == 413 && upload_divide(upload))
		return true;
	return status == 404 || status == 416 || (status == 400 && !fresh);
}

/* 1 the blob is there, 0 another try may help (*err says what was wrong), -1. */
static int upload_judge(struct upload *upload, int result, bool fresh, struct err *err)
{
	struct err why;
	int held;

	if (result != 0)
		return result < 0 ? -1 : 0;
	if (upload->response.status < 300)
		return 1;
	(void)remote_refused(upload->remote, &upload->response, "the upload", err);
	if (upload_is_lost(upload, fresh)) {
		upload_forget(upload);
		return 0;
	}
	/*
	 * Another client may have sent it meanwhile, and some registries refuse
	 * a blob that they have.
	 */
	why = *err;
	held = upload_is_held(upload->remote, upload->http, &upload->spec->digest, err);
	if (held == 0)
		*err = why;
	return held == 1 ? 1 : -1;
}

static int upload_once(struct upload *upload, struct err *err)
{
	bool fresh = upload->untouched;
	int result = 0;

	upload->untouched = false;
	if (!fresh && upload->location.len > 0)
		result = upload_recall(upload, err);
	if (result == 0 && upload->location.len == 0) {
		fresh = true;
		result = upload_begin(upload, err);
	}
	while (result == 0 && upload->response.status < 300 && upload->kept < upload->spec->size &&
	       (upload->chunk > 0 || upload->kept > 0))
		result = upload_patch(upload, err);
	if (result == 0 && upload->response.status < 300)
		result = upload_close(upload, err);
	return upload_judge(upload, result, fresh, err);
}

static int upload_run(struct upload *upload, struct err *err)
{
	struct retry retry = remote_retry(upload->remote);

	/* Of a session that a mount became nobody knows whether it expects a sha512. */
	if (upload->spec->digest.algorithm == DIGEST_SHA256 &&
	    buf_add(&upload->location, upload->spec->session, err) < 0)
		return -1;
	upload->untouched = upload->location.len > 0;
	for (;;) {
		uint64_t before = upload->kept;
		int result = upload_once(upload, err);

		if (result != 0)
			return result < 0 ? -1 : 0;
		if (upload->kept > before && upload->kept - before >= UPLOAD_PROGRESS_BYTES)
			retry_forget(&retry);
		if (retry_wait(&retry, upload->http, upload->response.retry_after_ms, err) < 0)
			return -1;
		result = upload_is_held(upload->remote, upload->http, &upload->spec->digest,
					err); /* only the answer may have been lost */
		if (result != 0)
			return result < 0 ? -1 : 0;
	}
}

int upload_blob(struct remote *remote, struct http *http, const struct upload_spec *spec,
		struct err *err)
{
	struct upload upload = {
		.spec = spec,
		.remote = remote,
		.http = http,
		.location = BUF_INIT(HTTP_URL_MAX),
		.body = {.http = {.source = {upload_body_read}, .rewind = upload_body_rewind},
			 .spec = spec},
	};
	int result = upload_run(&upload, err);

	blob_reader_close(upload.body.reader);
	http_reply_done(&upload.response);
	buf_done(&upload.location);
	return result;
}

int upload_document(struct remote *remote, struct http *http, const char *name,
		    struct str media_type, struct str text, struct http_reply *out, struct err *err)
{
	auto_buf struct buf type = BUF_INIT(HTTP_REPLY_HEADERS_MAX);
	struct text_body body;
	struct remote_request request = {.method = HTTP_PUT,
					 .kind = "manifests",
					 .name = name,
					 .document = true,
					 .upload = &body.http};
	struct digest digest;
	struct digest kept;
	struct err ignored;

	text_body_init(&body, text);
	if (buf_add(&type, media_type, err) < 0)
		return -1;
	request.content_type = type.ptr;
	if (remote_send(remote, http, &request, name, out, err) < 0)
		return -1;
	if (out->status >= 300)
		return remote_refused(remote, out, name, err);
	digest_of(text, &digest);
	if (digest_parse(http_header(out, "Docker-Content-Digest"), &kept, &ignored) == 0 &&
	    kept.algorithm == digest.algorithm && !digest_equal(&kept, &digest))
		return err_set(err, ERR_REMOTE, "the registry kept another manifest than was sent");
	return 0;
}
