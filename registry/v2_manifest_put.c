/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v2_manifest_put.c - a manifest is taken, in this order:
 *
 *	1 judged            its digest, its types, what it names: nothing is written
 *	2 named in a lease  with all that it names, so that no collection takes any
 *	3 stored            its bytes are a blob, durable
 *	4 recorded          one transaction: what it names is looked up once more, then
 *	                    the manifest, whom it is about, and its tags
 *
 * Whoever deletes or collects a record or a receipt does so in a transaction before 4, and the
 * manifest is refused, or after, and finds that it is named.
 */
#include "registry/v2_manifest.h"

#include "layers/base/clock.h"
#include "layers/blob.h"
#include "layers/lease.h"
#include "registry/holding.h"
#include "registry/outline.h"
#include "registry/tagging.h"

#include <stdio.h>

#define V2_MANIFEST_PUT_TAGS_MAX HTTP_QUERY_MAX

struct v2_manifest_put {
	struct v2_call *call;
	struct str repository;
	struct outline outline;
	struct repository_item item;
	struct str tags[V2_MANIFEST_PUT_TAGS_MAX];
	size_t tag_count;
	struct tagging tagging;
};

/* Then the response says why: that is no failure of ours. */
static bool v2_manifest_put_is_refused(const struct v2_manifest_put *put)
{
	return put->call->response->status >= 400;
}

static void v2_manifest_put_check_digest(struct v2_manifest_put *put)
{
	const struct v2_path *path = &put->call->path;
	struct str body = put->call->request->body;
	AUTO(hasher) struct hasher hasher = {0};

	digest_of(body, &put->item.blob);
	put->item.digest = put->item.blob;
	if (!path->by_digest)
		return;
	hasher_init_as(&hasher, path->digest.algorithm);
	hasher_add(&hasher, body);
	hasher_final(&hasher, &put->item.digest);
	if (!digest_equal(&put->item.digest, &path->digest))
		v2_refuse_digest(put->call->response, 400, V2_DIGEST_INVALID, &put->item.digest,
				 "the manifest has another digest");
}

/* The tag of the path; or, beside a digest, those of the query. */
static void v2_manifest_put_take_tags(struct v2_manifest_put *put)
{
	const struct http_request *request = put->call->request;

	if (!put->call->path.by_digest) {
		put->tags[put->tag_count++] = put->call->path.reference;
		return;
	}
	for (size_t i = 0; i < request->query_count; i++) {
		const struct http_field *field = &request->query[i];

		if (!str_equal(field->name, STR("tag")))
			continue;
		if (!grammar_is_tag(field->value)) {
			v2_refuse(put->call->response, 400, V2_TAG_INVALID,
				  "one of the tags can be none");
			return;
		}
		put->tags[put->tag_count++] = field->value;
	}
}

/* Content-Type without parameters; "" where it says nothing. */
static struct str v2_manifest_put_header_type(const struct v2_manifest_put *put)
{
	const char *field = http_find_header(put->call->request, "Content-Type");
	struct str rest = str_of(field ? field : "");
	struct str type = STR("");

	(void)str_cut(&rest, ';', &type);
	type = str_trim(type);
	if (str_equal(type, STR("application/json")) ||
	    str_equal(type, STR("application/octet-stream")) ||
	    str_equal(type, STR("application/x-www-form-urlencoded"))) /* curl's, unasked */
		return STR("");
	return type;
}

static bool v2_manifest_put_type_fits(const struct outline *outline, struct str type)
{
	if (outline->index)
		return str_equal(type, STR(MEDIA_OCI_INDEX)) ||
		       str_equal(type, STR(MEDIA_DOCKER_LIST));
	return str_equal(type, STR(MEDIA_OCI_MANIFEST)) ||
	       str_equal(type, STR(MEDIA_DOCKER_MANIFEST));
}

static void v2_manifest_put_check_type(struct v2_manifest_put *put)
{
	const struct outline *outline = &put->outline;
	struct str header = v2_manifest_put_header_type(put);
	struct str type = header.len > 0                ? header
			  : outline->media_type.len > 0 ? outline->media_type
							: outline_type(outline);

	if (outline->media_type.len > 0 && !str_equal(type, outline->media_type))
		v2_refuse(put->call->response, 400, V2_MANIFEST_INVALID,
			  "its mediaType is not what Content-Type says");
	else if (!v2_manifest_put_type_fits(outline, type))
		v2_refuse(put->call->response, 400, V2_MANIFEST_INVALID,
			  "it is no document of the type that it is said to be");
	else
		(void)snprintf(put->item.media_type, sizeof(put->item.media_type), STR_FMT,
			       STR_ARG(type));
}

static void v2_manifest_put_read(struct v2_manifest_put *put)
{
	struct err err;

	if (outline_parse(put->call->request->body, &put->outline, &err) < 0)
		v2_refuse(put->call->response, 400,
			  err.kind == ERR_UNSUPPORTED ? V2_UNSUPPORTED : V2_MANIFEST_INVALID, "%s",
			  err.text);
	else
		v2_manifest_put_check_type(put);
}

/* The record of what is named. An index may name what was put as a blob. 1, 0, -1. */
static int v2_manifest_put_find(const struct v2_manifest_put *put, struct meta *meta,
				const struct outline_item *item, struct repository_item *out,
				struct err *err)
{
	const struct digest *digest = &item->what.digest;
	int found = 0;

	if (item->kind == OUTLINE_DOCUMENT)
		found = repository_find(meta, put->repository, REPOSITORY_MANIFEST, digest, out,
					err);
	if (found == 0)
		found = repository_find(meta, put->repository, REPOSITORY_BLOB, digest, out, err);
	return found;
}

/*
 * In a read transaction *lease is told what was found; in the last one it is NULL,
 * and what only a receipt tells of gets its record.
 */
static int v2_manifest_put_check_item(struct v2_manifest_put *put, struct meta *meta,
				      struct lease *lease, const struct outline_item *item,
				      struct err *err)
{
	struct repository_item held;
	struct blob_info info;
	int found = v2_manifest_put_find(put, meta, item, &held, err);

	if (found == 1 && !lease)
		found = blob_find(put->call->v2->store, &held.blob, &info, err);
	if (found < 0 || (found == 1 && lease && lease_add(lease, &held.blob, err) < 0) ||
	    (found == 1 && !lease && repository_confirm(meta, put->repository, &held, err) < 0))
		return -1;
	if (found == 0 && item->kind != OUTLINE_FOREIGN)
		v2_refuse_digest(put->call->response, 404, V2_MANIFEST_BLOB_UNKNOWN,
				 &item->what.digest, "it names what its repository has not");
	else if (found == 1 && held.size != item->what.size)
		v2_refuse_digest(put->call->response, 400, V2_SIZE_INVALID, &item->what.digest,
				 "it names what has another size");
	return 0;
}

static int v2_manifest_put_check_items(struct v2_manifest_put *put, struct meta *meta,
				       struct lease *lease, struct err *err)
{
	for (size_t i = 0; i < put->outline.count && !v2_manifest_put_is_refused(put); i++) {
		if (v2_manifest_put_check_item(put, meta, lease, &put->outline.items[i], err) < 0)
			return -1;
	}
	return 0;
}

static int v2_manifest_put_lease(struct v2_manifest_put *put, struct lease *lease, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;

	if (lease_add(lease, &put->item.blob, err) < 0 ||
	    meta_begin(put->call->v2->store, META_READ, &meta, err) < 0 ||
	    v2_manifest_put_check_items(put, meta, lease, err) < 0)
		return -1;
	meta_abort(steal_ptr(&meta));
	return v2_manifest_put_is_refused(put) ? 0 : lease_rest(lease, err);
}

static int v2_manifest_put_store(struct v2_manifest_put *put, struct err *err)
{
	AUTO(blob_writer) struct blob_writer *writer = NULL;
	struct blob_info info;

	if (blob_writer_open(put->call->v2->store, &writer, err) < 0)
		return -1;
	blob_writer_hash_as(writer, put->item.digest.algorithm);
	if (blob_writer_add(writer, put->call->request->body, err) < 0 ||
	    blob_writer_commit(writer, &put->item.digest, &info, err) < 0)
		return -1;
	put->item.size = info.size;
	return put->tag_count > 0 ? tagging_make(put->call->v2->store, put->repository, &put->item,
						 &put->outline, &put->tagging, err)
				  : 0;
}

static int v2_manifest_put_record(struct v2_manifest_put *put, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;

	if (meta_begin(put->call->v2->store, META_SHARED, &meta, err) < 0 ||
	    v2_manifest_put_check_items(put, meta, NULL, err) < 0)
		return -1;
	if (v2_manifest_put_is_refused(put))
		return 0;
	if (repository_put_manifest(meta, put->repository, &put->item, &put->outline, err) < 0)
		return -1;
	for (size_t i = 0; i < put->tag_count; i++) {
		if (tagging_put(meta, put->repository, put->tags[i], &put->tagging, err) < 0)
			return -1;
	}
	return meta_commit(steal_ptr(&meta), err);
}

static int v2_manifest_put_keep(struct v2_manifest_put *put, struct err *err)
{
	AUTO(lease) struct lease *lease = NULL;

	put->item.at_ms = clock_now_ms();
	if (lease_open(put->call->v2->store, &lease, err) < 0 ||
	    v2_manifest_put_lease(put, lease, err) < 0)
		return -1;
	if (v2_manifest_put_is_refused(put))
		return 0;
	return v2_manifest_put_store(put, err) < 0 ? -1 : v2_manifest_put_record(put, err);
}

static void v2_manifest_put_tell_tags(const struct v2_manifest_put *put)
{
	auto_buf struct buf list = BUF_INIT(V2_MANIFEST_PUT_TAGS_MAX * (GRAMMAR_TAG_MAX + 2));
	struct err full;

	for (size_t i = 0; i < put->tag_count; i++) {
		if (buf_addf(&list, &full, "%s" STR_FMT, i > 0 ? ", " : "", STR_ARG(put->tags[i])) <
		    0)
			return;
	}
	if (list.len > 0)
		http_add_header(put->call->response, "OCI-Tag", buf_str(&list));
}

static void v2_manifest_put_tell(const struct v2_manifest_put *put)
{
	struct http_response *response = put->call->response;
	char location[sizeof("/v2//manifests/") + GRAMMAR_NAME_MAX + DIGEST_TEXT_MAX];
	char text[DIGEST_TEXT_MAX];

	response->status = 201;
	(void)snprintf(location, sizeof(location), "/v2/" STR_FMT "/manifests/%s",
		       STR_ARG(put->repository), digest_format(&put->item.digest, text));
	http_add_header(response, "Location", str_of(location));
	v2_manifest_add_digest(response, "Docker-Content-Digest", &put->item.digest);
	if (put->outline.has_subject)
		v2_manifest_add_digest(response, "OCI-Subject", &put->outline.subject.digest);
	if (put->call->path.by_digest)
		v2_manifest_put_tell_tags(put);
}

void v2_manifest_put(struct v2_call *call)
{
	struct v2_manifest_put put = {.call = call, .repository = call->path.repository};
	struct err err;

	put.item.kind = REPOSITORY_MANIFEST;
	v2_manifest_put_check_digest(&put);
	if (!v2_manifest_put_is_refused(&put))
		v2_manifest_put_take_tags(&put);
	if (!v2_manifest_put_is_refused(&put))
		v2_manifest_put_read(&put);
	if (!v2_manifest_put_is_refused(&put) && v2_manifest_put_keep(&put, &err) < 0)
		v2_refuse_err(call->response, &err);
	else if (!v2_manifest_put_is_refused(&put))
		v2_manifest_put_tell(&put);
	tagging_done(&put.tagging);
	outline_done(&put.outline);
}
