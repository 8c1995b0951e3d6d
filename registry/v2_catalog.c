/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/v2_catalog.h"

#include "registry/repository.h"
#include "registry/v2_page.h"

struct v2_catalog {
	const struct v2_call *call;
	struct v2_page page;
	size_t count;
	char last[GRAMMAR_NAME_MAX + 1]; /* that is listed */
	bool more;
};

/* Names need no escapes. */
static int v2_catalog_add(void *ctx, struct str name, struct err *err)
{
	struct v2_catalog *catalog = ctx;
	const struct v2_call *call = catalog->call;

	if (!call->may(call->may_ctx, name, V2_PULL))
		return 0;
	catalog->more = catalog->count == catalog->page.max;
	if (catalog->more)
		return 1;
	memcpy(catalog->last, name.ptr, name.len);
	catalog->last[name.len] = '\0';
	return buf_addf(&call->response->body, err, "%s\"%s\"", catalog->count++ > 0 ? "," : "",
			catalog->last);
}

static int v2_catalog_read(struct v2_catalog *catalog, struct err *err)
{
	struct buf *body = &catalog->call->response->body;
	AUTO(meta) struct meta *meta = NULL;

	buf_clear(body);
	if (meta_begin(catalog->call->v2->store, META_READ, &meta, err) < 0 ||
	    buf_add(body, STR("{\"repositories\":["), err) < 0 ||
	    repository_each_name(meta, catalog->page.last, v2_catalog_add, catalog, err) < 0)
		return -1;
	return buf_add(body, STR("]}\n"), err);
}

void v2_catalog_answer(struct v2_call *call)
{
	struct v2_catalog catalog = {.call = call};
	struct err err;

	if (v2_page_read(call, &catalog.page) < 0)
		return;
	if (v2_catalog_read(&catalog, &err) < 0) {
		v2_refuse_err(call->response, &err);
		return;
	}
	http_add_header(call->response, "Content-Type", STR("application/json"));
	if (catalog.more && catalog.count > 0)
		v2_page_link(call, &catalog.page, str_of(catalog.last), STR(""));
}
