/* SPDX-License-Identifier: Apache-2.0 */
/* routes_server.c - server.info: which daemon this is, and what it holds. */
#include "api/daemon.h"
#include "api/routes.h"

/* Made once, so that polling it measures what any answer costs at least. */
int routes_server_make_info(const struct daemon *daemon, struct buf *out, struct err *err)
{
	char started[CLOCK_TEXT_MAX];
	AUTO(json)
	json_t *info = json_pack("{s:s, s:i, s:s, s:I, s:s}", "version", daemon->version,
				 "storeFormat", STORE_FORMAT, "data", store_path(daemon->store),
				 "pid", (json_int_t)getpid(), "startedAt",
				 clock_format(daemon->started_ms, started));

	return json_format(info, out, err);
}

static int server_info(struct call *call, struct err *err)
{
	char etag[HTTP_ETAG_MAX];
	struct str info = buf_str(&call->daemon->info);

	(void)err;
	route_answer_tagged(call, info, route_make_etag(info, etag), NULL);
	return 0;
}

static const struct route table[] = {
	{.name = "server.info", .level = TOKEN_READ, .kind = ROUTE_READ, .run = server_info},
};

const struct routes routes_server = {table, sizeof(table) / sizeof(table[0])};
