/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/v2_referrers.h"

#include "layers/blob.h"
#include "registry/holding.h"
#include "registry/outline.h"
#include "registry/referrers.h"
#include "registry/repository.h"
#include "registry/tag.h"
#include "registry/v2_page.h"

#include <stdio.h>

#define V2_REFERRERS_LAST "tag." /* and a number: the page before ended in the tag's index */
#define V2_REFERRERS_LAST_MAX (DIGEST_TEXT_MAX + sizeof(V2_REFERRERS_LAST))

struct v2_referrers {
	const struct v2_call *call;
	struct meta *meta;
	struct v2_page page;
	bool filtered;
	struct str type; /* that is asked for */
	size_t count;
	char last[V2_REFERRERS_LAST_MAX]; /* that was looked at */
	bool more;
};

static bool v2_referrers_is_full(const struct v2_referrers *referrers)
{
	return referrers->count == referrers->page.max ||
	       referrers->call->response->body.len >= V2_REFERRERS_BYTES;
}

static bool v2_referrers_fits(const struct v2_referrers *referrers, const json_t *descriptor)
{
	const json_t *type = json_object_get(descriptor, "artifactType");

	return !referrers->filtered ||
	       (json_is_string(type) && str_equal(json_str(type), referrers->type));
}

/* 1: the page is full. */
static int v2_referrers_add(struct v2_referrers *referrers, const char *last,
			    const json_t *descriptor, struct err *err)
{
	struct buf *body = &referrers->call->response->body;

	if (!v2_referrers_fits(referrers, descriptor))
		return 0;
	referrers->more = v2_referrers_is_full(referrers);
	if (referrers->more)
		return 1;
	if ((referrers->count++ > 0 && buf_add(body, STR(","), err) < 0) ||
	    json_format(descriptor, body, err) < 0)
		return -1;
	(void)snprintf(referrers->last, sizeof(referrers->last), "%s", last);
	return 0;
}

static int v2_referrers_add_record(void *ctx, const struct digest *digest, const json_t *descriptor,
				   struct err *err)
{
	char text[DIGEST_TEXT_MAX];

	return v2_referrers_add(ctx, digest_format(digest, text), descriptor, err);
}

static int v2_referrers_add_records(struct v2_referrers *referrers, struct err *err)
{
	const struct v2_path *path = &referrers->call->path;
	struct digest after;
	struct err none;
	bool first = digest_parse(referrers->page.last, &after, &none) < 0;

	if (str_starts(referrers->page.last, STR(V2_REFERRERS_LAST)))
		return 0;
	return repository_each_referrer(referrers->meta, path->repository, &path->digest,
					first ? NULL : &after, v2_referrers_add_record, referrers,
					err);
}

/* The document under the fallback's tag. 1, 0 there is none, -1. */
static int v2_referrers_read_tag(const struct v2_referrers *referrers, struct outline *out,
				 struct err *err)
{
	const struct v2_path *path = &referrers->call->path;
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	char reference[HOLDING_REFERENCE_MAX];
	char name[REFERRERS_TAG_MAX];
	struct tag tag;
	struct err none;
	int found;

	if (!holding_join(path->repository, str_of(referrers_tag(&path->digest, name)), reference))
		return 0;
	found = tag_find_newest(referrers->meta, str_of(reference), &tag, err);
	if (found <= 0)
		return found;
	if (blob_read_all(referrers->call->v2->store, &tag.target, &text, err) < 0)
		return err->kind == ERR_NOT_FOUND ? 0 : -1;
	return outline_parse(buf_str(&text), out, &none) == 0 && out->index;
}

/* Not what has a record, or was deleted. 1 it is listed, 0, -1. */
static int v2_referrers_counts(const struct v2_referrers *referrers, const struct digest *digest,
			       struct err *err)
{
	const struct v2_path *path = &referrers->call->path;
	struct repository_item item;
	int found = repository_has_referrer(referrers->meta, path->repository, &path->digest,
					    digest, err);

	if (found != 0)
		return found < 0 ? -1 : 0;
	return repository_find(referrers->meta, path->repository, REPOSITORY_MANIFEST, digest,
			       &item, err);
}

static int v2_referrers_add_tagged(struct v2_referrers *referrers, struct err *err)
{
	auto_outline struct outline outline = {0};
	struct str start = referrers->page.last;
	uint64_t at = 0;
	int found = v2_referrers_read_tag(referrers, &outline, err);

	if (found <= 0)
		return found;
	if (str_starts(start, STR(V2_REFERRERS_LAST))) {
		start = str_skip(start, sizeof(V2_REFERRERS_LAST) - 1);
		(void)str_take_number(&start, &at);
	}
	for (; at < outline.count; at++) {
		const json_t *list = json_object_get(outline.document, "manifests");
		char last[V2_REFERRERS_LAST_MAX];

		(void)snprintf(last, sizeof(last), V2_REFERRERS_LAST "%ju", (uintmax_t)at + 1);
		found = v2_referrers_counts(referrers, &outline.items[at].what.digest, err);
		if (found == 1)
			found = v2_referrers_add(referrers, last, json_array_get(list, (size_t)at),
						 err);
		if (found != 0)
			return found;
	}
	return 0;
}

static int v2_referrers_list(struct v2_referrers *referrers, struct err *err)
{
	struct buf *body = &referrers->call->response->body;
	AUTO(meta) struct meta *meta = NULL;
	int result;

	buf_clear(body);
	if (meta_begin(referrers->call->v2->store, META_READ, &meta, err) < 0 ||
	    buf_add(body,
		    STR("{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_INDEX
			"\",\"manifests\":["),
		    err) < 0)
		return -1;
	referrers->meta = meta;
	result = v2_referrers_add_records(referrers, err);
	if (result == 0)
		result = v2_referrers_add_tagged(referrers, err);
	return result < 0 ? -1 : buf_add(body, STR("]}"), err);
}

static void v2_referrers_link(const struct v2_referrers *referrers)
{
	auto_buf struct buf query = BUF_INIT(V2_PAGE_LINK_MAX);
	struct err full;

	if (referrers->filtered && (buf_add(&query, STR("&artifactType="), &full) < 0 ||
				    v2_page_escape(referrers->type, &query, &full) < 0))
		return;
	v2_page_link(referrers->call, &referrers->page, str_of(referrers->last), buf_str(&query));
}

void v2_referrers_answer(struct v2_call *call)
{
	struct v2_referrers referrers = {.call = call};
	struct err err;

	if (v2_page_read(call, &referrers.page) < 0)
		return;
	referrers.filtered = v2_path_find(call->request, STR("artifactType"), &referrers.type) &&
			     referrers.type.len > 0;
	if (v2_referrers_list(&referrers, &err) < 0) {
		v2_refuse_err(call->response, &err);
		return;
	}
	http_add_header(call->response, "Content-Type", STR(MEDIA_OCI_INDEX));
	if (referrers.filtered)
		http_add_header(call->response, "OCI-Filters-Applied", STR("artifactType"));
	if (referrers.more && referrers.count > 0)
		v2_referrers_link(&referrers);
}
