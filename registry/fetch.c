/* SPDX-License-Identifier: Apache-2.0 */
#define LOG_MODULE "registry"
#include "registry/fetch_priv.h"

#include "layers/base/log.h"
#include "registry/range_priv.h"

#include <inttypes.h>
#include <stdio.h>

int fetch_head(struct remote *remote, struct http *http, const char *name, struct digest *out,
	       struct err *err)
{
	const struct remote_request request = {.method = HTTP_HEAD,
					       .kind = "manifests",
					       .name = name,
					       .document = true,
					       .accept = FETCH_ACCEPT};
	auto_http_reply struct http_reply response = {0};
	struct err ignored;
	bool strayed;
	int result = remote_try(remote, http, &request, &response, &strayed, err);

	/* Who is silent now would be so again. */
	if (result < 0)
		return response.worth_retrying && err->kind != ERR_TIMEOUT ? 0 : -1;
	if (response.status == 200)
		return digest_parse(http_header(&response, "Docker-Content-Digest"), out,
				    &ignored) == 0;
	(void)remote_failed(remote, &response, result, strayed, name, err);
	/* A signed URL refuses HEAD, some registries do not know it: only these two are meant. */
	return strayed || (response.status != 404 && response.status != 401) ? 0 : -1;
}

struct str fetch_media_type(const struct http_reply *response)
{
	struct str rest = http_header(response, "Content-Type");
	struct str type = STR("");

	(void)str_cut(&rest, ';', &type);
	return str_trim(type);
}

int fetch_check_manifest(const struct http_reply *response, struct str text,
			 const struct digest *digest, struct err *err)
{
	AUTO(json) json_t *document = NULL;
	struct str sent = fetch_media_type(response);
	struct digest claimed;
	struct str inner;
	struct err ignored;
	struct err why;
	bool index;

	/* A signed one of schema 1 is named by the digest of a part of it. */
	if (manifest_is_index(text, &index, &why) < 0 && why.kind == ERR_UNSUPPORTED)
		return err_set(err, why.kind, "%s", why.text);
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

int fetch_manifest(struct remote *remote, struct http *http, const char *name, struct buf *out,
		   struct digest *out_digest, struct err *err)
{
	const struct remote_request request = {
		.kind = "manifests", .name = name, .accept = FETCH_ACCEPT};
	auto_http_reply struct http_reply response = {0};

	if (remote_get(remote, http, &request, name, out, &response, err) < 0)
		return -1;
	digest_of(buf_str(out), out_digest);
	return fetch_check_manifest(&response, buf_str(out), out_digest, err);
}

/* A blob on its way: how far we are, over all tries. */
struct fetch_body {
	struct sink sink;
	struct sink *out;
	const struct descriptor *blob;
	const struct http_reply *response;
	uint64_t done; /* bytes that `out` has */
	uint64_t skip; /* bytes of this answer that `out` has already */
	bool begun;    /* this answer's headers were judged */
	bool no_range; /* the registry cannot continue in the middle */
};

static int fetch_wrong_size(const struct fetch_body *body, uint64_t size, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "blob of %" PRIu64 " bytes, the manifest says %" PRIu64,
		       size, body->blob->size);
}

/* Where this answer starts, and whether it is of a blob of the right size. */
static int fetch_begin_body(struct fetch_body *body, struct err *err)
{
	struct range range;
	uint64_t length;

	body->begun = true;
	if (body->response->status == 200) {
		body->skip = body->done;
		if (range_parse_number(http_header(body->response, "Content-Length"), &length) &&
		    length != body->blob->size)
			return fetch_wrong_size(body, length, err);
		return 0;
	}
	body->skip = 0;
	body->no_range = true; /* unless this answer is fine */
	if (range_parse(http_header(body->response, "Content-Range"), &range, err) < 0)
		return -1;
	if (range.size != RANGE_SIZE_UNKNOWN && range.size != body->blob->size)
		return fetch_wrong_size(body, range.size, err);
	if (range.first != body->done)
		return err_set(err, ERR_REMOTE,
			       "asked for bytes from %" PRIu64 ", got them from %" PRIu64,
			       body->done, range.first);
	body->no_range = false;
	return 0;
}

static int fetch_write_body(struct sink *sink, struct str bytes, struct err *err)
{
	struct fetch_body *body = container_of(sink, struct fetch_body, sink);

	if (!body->begun && fetch_begin_body(body, err) < 0)
		return -1;
	if (body->skip >= bytes.len) {
		body->skip -= bytes.len;
		return 0;
	}
	bytes = str_skip(bytes, body->skip);
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
static int fetch_blob_once(struct remote *remote, struct http *http, const char *name,
			   struct fetch_body *body, struct http_reply *response, struct err *err)
{
	char range[64];
	struct remote_request request = {
		.method = HTTP_GET, .kind = "blobs", .name = name, .body = &body->sink};
	bool strayed;
	int result;

	(void)snprintf(range, sizeof(range), "%" PRIu64 "-%" PRIu64, body->done,
		       body->blob->size - 1);
	request.range = body->done > 0 && !body->no_range ? range : NULL;
	body->begun = false;
	result = remote_try(remote, http, &request, response, &strayed, err);
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
	/* After a wrong answer to a range ask for the whole. */
	if (result < 0 && err->kind == ERR_REMOTE && request.range && body->no_range)
		return 0;
	return remote_failed(remote, response, result, strayed, name, err) ? 0 : -1;
}

int fetch_blob(struct remote *remote, struct http *http, const struct descriptor *blob,
	       struct sink *out, struct err *err)
{
	auto_http_reply struct http_reply response = {0};
	struct fetch_body body = {
		.sink = {fetch_write_body}, .out = out, .blob = blob, .response = &response};
	struct retry retry = remote_retry(remote);
	char name[DIGEST_TEXT_MAX];

	digest_format(&blob->digest, name);
	for (;;) {
		uint64_t before = body.done;
		int result = fetch_blob_once(remote, http, name, &body, &response, err);

		if (result != 0)
			return result < 0 ? -1 : 0;
		if (body.done - before >= FETCH_PROGRESS_BYTES)
			retry_forget(&retry);
		if (retry_wait(&retry, http, response.retry_after_ms, err) < 0)
			return -1;
		log_debug("blob is continued digest=%s at=%" PRIu64, name, body.done);
	}
}
