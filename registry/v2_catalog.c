/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/v2_catalog.h"

#include "registry/repository.h"
#include "registry/v2_page.h"

struct v2_catalog {
	const struct v2_call *call;
	struct v2_page_names names;
};

static int v2_catalog_add(void *ctx, struct str name, struct err *err)
{
	struct v2_catalog *catalog = ctx;
	const struct v2_call *call = catalog->call;

	if (!call->may(call->may_ctx, name, V2_PULL))
		return 0;
	return v2_page_add_name(call, &catalog->names, name, err);
}

static int v2_catalog_read(struct v2_catalog *catalog, struct err *err)
{
	struct buf *body = &catalog->call->response->body;
	AUTO(meta) struct meta *meta = NULL;

	buf_clear(body);
	if (meta_begin(catalog->call->v2->store, META_READ, &meta, err) < 0 ||
	    buf_add(body, STR("{\"repositories\":["), err) < 0 ||
	    repository_each_name(meta, catalog->names.page.last, v2_catalog_add, catalog, err) < 0)
		return -1;
	return buf_add(body, STR("]}\n"), err);
}

void v2_catalog_answer(struct v2_call *call)
{
	struct v2_catalog catalog = {.call = call};
	struct err err;

	if (v2_page_read(call, &catalog.names.page) < 0)
		return;
	if (v2_catalog_read(&catalog, &err) < 0) {
		v2_refuse_err(call->response, &err);
		return;
	}
	v2_page_end_names(call, &catalog.names);
}
