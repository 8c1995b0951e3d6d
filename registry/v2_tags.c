/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/v2_tags.h"

#include "registry/holding.h"
#include "registry/tag.h"
#include "registry/v2_page.h"

struct v2_tags {
	const struct v2_call *call;
	struct v2_page_names names;
};

static int v2_tags_add(void *ctx, struct str name, struct err *err)
{
	struct v2_tags *tags = ctx;

	if (name.len > GRAMMAR_TAG_MAX)
		return 0;
	return v2_page_add_name(tags->call, &tags->names, name, err);
}

static int v2_tags_list(struct v2_tags *tags, struct meta *meta, struct err *err)
{
	struct buf *body = &tags->call->response->body;
	struct str repository = tags->call->path.repository;

	buf_clear(body);
	if (buf_addf(body, err, "{\"name\":\"" STR_FMT "\",\"tags\":[", STR_ARG(repository)) < 0 ||
	    tag_each_name(meta, repository, tags->names.page.last, v2_tags_add, tags, err) < 0)
		return -1;
	return buf_add(body, STR("]}\n"), err);
}

/* 1 listed, 0 there is no such repository, -1. */
static int v2_tags_read(struct v2_tags *tags, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	int exists;

	if (meta_begin(tags->call->v2->store, META_READ, &meta, err) < 0)
		return -1;
	exists = repository_exists(meta, tags->call->path.repository, err);
	if (exists <= 0)
		return exists;
	return v2_tags_list(tags, meta, err) < 0 ? -1 : 1;
}

void v2_tags_answer(struct v2_call *call)
{
	struct v2_tags tags = {.call = call};
	struct err err;
	int found;

	if (v2_page_read(call, &tags.names.page) < 0)
		return;
	found = v2_tags_read(&tags, &err);
	if (found < 0) {
		v2_refuse_err(call->response, &err);
	} else if (found == 0) {
		v2_refuse(call->response, 404, V2_NAME_UNKNOWN, "no repository " STR_FMT,
			  STR_ARG(call->path.repository));
	} else {
		v2_page_end_names(call, &tags.names);
	}
}
