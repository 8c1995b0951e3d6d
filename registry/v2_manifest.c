/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/v2_manifest.h"

#include "layers/base/clock.h"
#include "layers/blob.h"
#include "registry/gzip_tag.h"
#include "registry/holding.h"
#include "registry/manifest.h"
#include "registry/tag.h"

#define V2_MANIFEST_GZIP_WAIT_MS 60000 /* clients that wait longer are asked to come again */
#define V2_MANIFEST_SHOWN 140          /* of a reference, how much an error says: all of most */

void v2_manifest_add_digest(struct http_response *response, const char *name,
			    const struct digest *digest)
{
	char text[DIGEST_TEXT_MAX];

	http_add_header(response, name, str_of(digest_format(digest, text)));
}

static void v2_manifest_unknown(struct v2_call *call)
{
	struct str reference = call->path.reference;

	if (reference.len > V2_MANIFEST_SHOWN)
		reference.len = V2_MANIFEST_SHOWN;
	v2_refuse(call->response, 404, V2_MANIFEST_UNKNOWN, "no manifest " STR_FMT " in " STR_FMT,
		  STR_ARG(reference), STR_ARG(call->path.repository));
}

/* Whether who asks has it already; a tag may stand for another one since. */
static bool v2_manifest_is_known(const struct v2_call *call, const struct repository_item *item)
{
	char etag[HTTP_ETAG_MAX];
	char text[DIGEST_TEXT_MAX];
	struct str name = str_of(digest_format(&item->digest, text));

	return http_add_etag(call->request, call->response, http_etag(name, etag));
}

static void v2_manifest_send(struct v2_call *call, const struct repository_item *item)
{
	struct http_response *response = call->response;
	struct err err;

	buf_clear(&response->body);
	if (blob_read_all(call->v2->store, &item->blob, &response->body, &err) < 0) {
		if (err.kind == ERR_NOT_FOUND) /* deleted since it was found */
			v2_manifest_unknown(call);
		else
			v2_refuse_err(response, &err);
		return;
	}
	v2_manifest_add_digest(response, "Docker-Content-Digest", &item->digest);
	if (v2_manifest_is_known(call, item)) {
		buf_clear(&response->body);
		return;
	}
	http_add_header(response, "Content-Type", str_of(item->media_type));
}

/* What the request's tag stands for. 1, 0, -1. */
static int v2_manifest_find_tag(const struct v2_call *call, struct meta *meta, struct digest *out,
				struct err *err)
{
	char reference[HOLDING_REFERENCE_MAX];
	struct tag tag;
	int found;

	if (!holding_join(call->path.repository, call->path.reference, reference))
		return 0;
	found = tag_find_newest(meta, str_of(reference), &tag, err);
	if (found == 1)
		*out = *tag_digest(&tag);
	return found;
}

static int v2_manifest_look_up(const struct v2_call *call, struct repository_item *out,
			       struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	struct digest digest = call->path.digest;
	int found = 1;

	if (meta_begin(call->v2->store, META_READ, &meta, err) < 0)
		return -1;
	if (!call->path.by_digest)
		found = v2_manifest_find_tag(call, meta, &digest, err);
	return found == 1 ? repository_find(meta, call->path.repository, REPOSITORY_MANIFEST,
					    &digest, out, err)
			  : found;
}

/* 1, 0, -1. */
static int v2_manifest_find(const struct v2_call *call, struct repository_item *out,
			    struct err *err)
{
	struct v2_recall *recall = call->v2->recall;
	uint64_t generation = meta_generation(call->v2->store);
	int found;

	if (recall && v2_recall_find(recall, &call->path, generation, out))
		return 1;
	found = v2_manifest_look_up(call, out, err);
	if (found == 1 && recall)
		v2_recall_put(recall, &call->path, generation, out);
	return found;
}

/* What the variant that is asked for, and not there, would be made of. 1, 0, -1. */
static int v2_manifest_find_base(const struct v2_call *call, struct str *tag, struct digest *out,
				 struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	struct tag base;
	int found;

	if (call->path.by_digest || !call->v2->make_gzip ||
	    !gzip_tag_split(call->path.reference, tag))
		return 0;
	if (meta_begin(call->v2->store, META_READ, &meta, err) < 0)
		return -1;
	found = gzip_tag_find(meta, call->path.repository, *tag, &base, err);
	if (found == 1)
		*out = base.target;
	return found;
}

/* What is no image, or a damaged one, has no variant: nothing here failed. */
static void v2_manifest_refuse_variant(struct v2_call *call, const struct err *why)
{
	switch ((int)why->kind) {
	case ERR_INVALID:
	case ERR_NOT_FOUND:
	case ERR_LIMIT:
	case ERR_CORRUPT:
	case ERR_UNSUPPORTED:
		v2_refuse(call->response, 404, V2_MANIFEST_UNKNOWN,
			  "there can be no gzip variant: %s", why->text);
		break;
	default:
		v2_refuse_err(call->response, why);
	}
}

/* Wait for a variant of an image of ours; false where there is no such image. */
static bool v2_manifest_await(struct v2_call *call)
{
	struct v2 *v2 = call->v2;
	struct digest target;
	struct str tag;
	struct err err;
	uint64_t topic;
	int found = v2_manifest_find_base(call, &tag, &target, &err);

	if (found == 0)
		return false;
	if (found == 1 &&
	    v2->make_gzip(v2->make_gzip_ctx, call->path.repository, tag, &target, &topic, &err) < 0)
		found = -1;
	if (found == 1 && call->request->over)
		found = err_set(&err, ERR_UNAVAILABLE, "the gzip variant is being made; ask again");
	if (found == 1)
		call->response->wait =
			(struct http_wait){topic, clock_monotonic_ms() + V2_MANIFEST_GZIP_WAIT_MS};
	else
		v2_manifest_refuse_variant(call, &err);
	return true;
}

static void v2_manifest_get(struct v2_call *call)
{
	struct repository_item item;
	struct err err;
	int found = v2_manifest_find(call, &item, &err);

	if (found == 1)
		v2_manifest_send(call, &item);
	else if (found < 0)
		v2_refuse_err(call->response, &err);
	else if (!v2_manifest_await(call))
		v2_manifest_unknown(call);
}

struct v2_untagging {
	struct meta *meta;
	const struct digest *digest;
};

static int v2_manifest_untag_one(void *ctx, struct str reference, const struct tag *tag,
				 struct err *err)
{
	const struct v2_untagging *untagging = ctx;

	if (!digest_equal(tag_digest(tag), untagging->digest))
		return 0;
	return tag_del_digest(untagging->meta, reference, untagging->digest, err) < 0 ? -1 : 0;
}

/* It, and all tags that stand for it. 1, 0 it was not there, -1. */
static int v2_manifest_del_digest(const struct v2_call *call, struct meta *meta, struct err *err)
{
	struct v2_untagging untagging = {meta, &call->path.digest};
	int found = repository_del(meta, call->path.repository, REPOSITORY_MANIFEST,
				   &call->path.digest, err);

	if (found == 1 &&
	    tag_each_in(meta, call->path.repository, v2_manifest_untag_one, &untagging, err) < 0)
		return -1;
	return found;
}

static int v2_manifest_del_tag(const struct v2_call *call, struct meta *meta, struct err *err)
{
	char reference[HOLDING_REFERENCE_MAX];

	if (!holding_join(call->path.repository, call->path.reference, reference))
		return 0;
	return tag_del(meta, str_of(reference), err);
}

static int v2_manifest_del(const struct v2_call *call, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	int found;

	if (meta_begin(call->v2->store, META_SHARED, &meta, err) < 0)
		return -1;
	found = call->path.by_digest ? v2_manifest_del_digest(call, meta, err)
				     : v2_manifest_del_tag(call, meta, err);
	if (found <= 0)
		return found;
	return meta_commit(steal_ptr(&meta), err) < 0 ? -1 : 1;
}

static void v2_manifest_delete(struct v2_call *call)
{
	struct err err;
	int found = v2_manifest_del(call, &err);

	if (found == 1)
		call->response->status = 202;
	else if (found == 0)
		v2_manifest_unknown(call);
	else
		v2_refuse_err(call->response, &err);
}

void v2_manifest_answer(struct v2_call *call)
{
	if (call->path.action == V2_PUSH)
		v2_manifest_put(call);
	else if (call->path.action == V2_DELETE)
		v2_manifest_delete(call);
	else
		v2_manifest_get(call);
}
