/* SPDX-License-Identifier: Apache-2.0 */
/* routes_contexts.c - contexts.put: a tar comes in, and is kept under its digest. */
#include "api/daemon.h"
#include "api/routes.h"
#include "bake/tarball.h"

static int contexts_put(struct call *call, struct err *err)
{
	struct store *store = call->daemon->store;
	AUTO(meta) struct meta *meta = NULL;
	struct tarball_info info;
	struct digest digest;
	char text[DIGEST_TEXT_MAX];
	int found;

	if (tarball_take(store, call->request->stream, &digest, err) < 0)
		return err_ctx(err, "the context");
	if (meta_begin(store, META_READ, &meta, err) < 0)
		return -1;
	found = tarball_find(meta, &digest, &info, err);
	if (found == 0)
		return err_set(err, ERR_CONFLICT, "the context was collected; put it again");
	if (found < 0)
		return -1;
	call->result = json_pack("{s:s, s:I}", "digest", digest_format(&digest, text), "sizeBytes",
				 (json_int_t)info.size);
	return 0;
}

static const struct route table[] = {
	{.name = "contexts.put",
	 .level = TOKEN_OPERATE,
	 .kind = ROUTE_WRITE,
	 .streamed = true,
	 .run = contexts_put},
};

const struct routes routes_contexts = {table, sizeof(table) / sizeof(table[0])};
