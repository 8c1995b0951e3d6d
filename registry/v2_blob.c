/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/v2_blob.h"

#include "layers/blob_part.h"
#include "layers/lease.h"
#include "layers/lease_reading.h"
#define LOG_MODULE "registry"
#include "layers/base/log.h"
#include "registry/repository.h"
#include "registry/v2_range.h"

#include <inttypes.h>
#include <stdio.h>

#define V2_BLOB_TYPE "application/octet-stream" /* a layer's own is its manifest's to say */
#define V2_BLOB_CACHE "private, max-age=31536000, immutable"
#define V2_BLOB_AT_ONCE ((uint64_t)16 * 1024) /* so much leaves before anybody could take it */
#define V2_BLOB_RANGE_MAX ((size_t)80)        /* "bytes " and three numbers */

/* Bytes first to first + count of a blob, while they are sent. */
struct v2_blob_stream {
	struct http_stream stream;
	struct blob_part part;
	struct lease_reading *reading; /* owned, or NULL */
	uint64_t first;
	uint64_t count;
};

static ssize_t v2_blob_copy(struct http_stream *stream, uint64_t at, char *out, size_t max,
			    enum blob_part_where where)
{
	struct v2_blob_stream *blob = container_of(stream, struct v2_blob_stream, stream);
	uint64_t left = blob->count - at;
	struct err err;
	ssize_t n;

	n = blob_part_read(&blob->part, blob->first + at, out, left < max ? (size_t)left : max,
			   where, &err);
	if (n < 0)
		log_error("blob cut at=%" PRIu64 " why=\"%s\"", at, err.text);
	return n;
}

static ssize_t v2_blob_read(struct http_stream *stream, uint64_t at, char *out, size_t max,
			    bool over, struct http_wait *wait)
{
	ssize_t n = v2_blob_copy(stream, at, out, max, BLOB_PART_ANYWHERE);

	(void)over; /* its length was said: it comes whole */
	(void)wait;
	return n == 0 ? HTTP_STREAM_END : n;
}

static ssize_t v2_blob_read_near(struct http_stream *stream, uint64_t at, char *out, size_t max)
{
	return v2_blob_copy(stream, at, out, max, BLOB_PART_IN_MEMORY);
}

static void v2_blob_close(struct http_stream *stream)
{
	struct v2_blob_stream *blob = container_of(stream, struct v2_blob_stream, stream);

	lease_reading_end(blob->reading);
	free(blob);
}

static void v2_blob_add_headers(struct http_response *out, struct str digest)
{
	http_add_header(out, "Docker-Content-Digest", digest);
	http_add_header(out, "Cache-Control", STR(V2_BLOB_CACHE));
	http_add_header(out, "Accept-Ranges", STR("bytes"));
}

/* The Range that counts: of a GET, and not where If-Range names something else. */
static const char *v2_blob_range(const struct http_request *request, struct str etag)
{
	const char *condition = http_find_header(request, "If-Range");

	if (request->method != HTTP_GET || (condition && !str_equal(str_of(condition), etag)))
		return NULL;
	return http_find_header(request, "Range");
}

static void v2_blob_refuse_range(struct http_response *out, uint64_t size)
{
	char text[V2_BLOB_RANGE_MAX];
	int n = snprintf(text, sizeof(text), "bytes */%" PRIu64, size);

	http_add_header(out, "Content-Range", (struct str){text, (size_t)n});
	v2_refuse(out, 416, V2_RANGE_INVALID, "the blob has %" PRIu64 " bytes, and none of these",
		  size);
}

bool v2_blob_begin(struct v2_call *call, struct str digest, uint64_t size, struct v2_range *out)
{
	struct http_response *response = call->response;
	char quoted[HTTP_ETAG_MAX];
	struct str etag = http_etag(digest, quoted);
	char text[V2_BLOB_RANGE_MAX];
	bool known = http_add_etag(call->request, response, etag);
	int partial = v2_range_parse(v2_blob_range(call->request, etag), size, out);
	int n;

	if (partial < 0 && !known) {
		v2_blob_refuse_range(response, size);
		return false;
	}
	v2_blob_add_headers(response, digest);
	if (known)
		return false;
	if (partial > 0) {
		n = snprintf(text, sizeof(text), "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64,
			     out->first, out->first + out->count - 1, size);
		http_add_header(response, "Content-Range", (struct str){text, (size_t)n});
		response->status = 206;
	}
	http_add_header(response, "Content-Type", STR(V2_BLOB_TYPE));
	return true;
}

static void v2_blob_send_part(struct http_response *out, const struct blob_part *part,
			      struct lease_reading *reading, const struct v2_range *range)
{
	struct v2_blob_stream *blob = malloc(sizeof(*blob));

	if (!blob)
		abort();
	*blob = (struct v2_blob_stream){
		.stream = {v2_blob_read, v2_blob_close, v2_blob_read_near},
		.part = *part,
		.reading = reading,
		.first = range->first,
		.count = range->count,
	};
	out->stream = &blob->stream;
	out->stream_bytes = range->count;
}

static void v2_blob_refuse(struct v2_call *call)
{
	v2_refuse(call->response, 404, V2_BLOB_UNKNOWN, "this repository has no such blob");
}

/*
 * Who deletes a blob does not take it from those who read it. A store that is too
 * full for a lease is read without one.
 */
static struct lease_reading *v2_blob_hold(const struct v2_call *call, const struct digest *blob,
					  uint64_t size)
{
	struct lease_reading *reading = NULL;
	struct err err;

	if (call->request->method != HTTP_GET || size <= V2_BLOB_AT_ONCE)
		return NULL;
	if (lease_reading_begin(call->v2->store, blob, &reading, &err) < 0)
		log_warn("blob read without a lease why=\"%s\"", err.text);
	return reading;
}

/* digest is what it is asked for as, blob what the store calls it. */
static void v2_blob_send(struct v2_call *call, const struct digest *digest,
			 const struct digest *blob)
{
	AUTO(lease_reading) struct lease_reading *reading = NULL;
	char text[DIGEST_TEXT_MAX];
	struct v2_range range;
	struct blob_part part;
	struct err err;
	int found = blob_part_open(call->v2->store, blob, &part, &err);

	if (found == 1) {
		reading = v2_blob_hold(call, &part.blob, part.size);
		if (reading) /* it may have gone just before */
			found = blob_part_open(call->v2->store, blob, &part, &err);
	}
	if (found < 0)
		v2_refuse_err(call->response, &err);
	else if (found == 0)
		v2_blob_refuse(call);
	else if (v2_blob_begin(call, str_of(digest_format(digest, text)), part.size, &range))
		v2_blob_send_part(call->response, &part, steal_ptr(&reading), &range);
}

static int v2_blob_find(const struct v2_call *call, struct repository_item *out, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;

	if (meta_begin(call->v2->store, META_READ, &meta, err) < 0)
		return -1;
	return repository_find(meta, call->path.repository, REPOSITORY_BLOB, &call->path.digest,
			       out, err);
}

/*
 * Who asks whether it is there may go on to name it, and need not send it again.
 * A collection that is about to take it has not begun, or has done so.
 */
static int v2_blob_promise(const struct v2_call *call, struct repository_item *out, struct err *err)
{
	AUTO(lease) struct lease *lease = NULL;
	int found;

	if (lease_open(call->v2->store, &lease, err) < 0)
		return -1;
	found = v2_blob_find(call, out, err);
	if (found == 1)
		repository_note(call->v2->store, out);
	return found;
}

void v2_blob_answer(struct v2_call *call)
{
	bool promised = call->request->method == HTTP_HEAD;
	struct repository_item item;
	struct err err;
	int found = promised ? v2_blob_promise(call, &item, &err) : v2_blob_find(call, &item, &err);

	if (found < 0) {
		v2_refuse_err(call->response, &err);
		return;
	}
	if (found == 0) {
		v2_blob_refuse(call);
		return;
	}
	v2_blob_send(call, &item.digest, &item.blob);
}
