/* SPDX-License-Identifier: Apache-2.0 */
/* routes_server.c - server.info: which daemon this is, and what it holds. */
#include "api/daemon.h"
#include "api/routes.h"

static int server_info(struct call *call, struct err *err)
{
	const struct daemon *daemon = call->daemon;
	struct server_load load = server_load(daemon->server);
	char started[CLOCK_TEXT_MAX];

	(void)err;
	call->result = json_pack("{s:s, s:i, s:s, s:I, s:s, s:I, s:I, s:I}", "version",
				 daemon->version, "storeFormat", STORE_FORMAT, "data",
				 store_path(daemon->store), "pid", (json_int_t)getpid(),
				 "startedAt", clock_format(daemon->started_ms, started),
				 "connections", (json_int_t)load.connections, "requests",
				 (json_int_t)load.requests, "waiting", (json_int_t)load.waiting);
	return 0;
}

static const struct route table[] = {
	{.name = "server.info", .level = TOKEN_READ, .kind = ROUTE_READ, .run = server_info},
};

const struct routes routes_server = {table, sizeof(table) / sizeof(table[0])};
