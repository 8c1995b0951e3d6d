/* SPDX-License-Identifier: Apache-2.0 */
/* routes.h - the tables of methods, one for each file of them. */
#pragma once

#include "api/route.h"

extern const struct routes routes_agents;   /* agents.* */
extern const struct routes routes_bakes;    /* bakes.* */
extern const struct routes routes_contexts; /* contexts.* */
extern const struct routes routes_events;   /* events.* */
extern const struct routes routes_mirror;   /* mirror.* */
extern const struct routes routes_sessions; /* sessions.* */
extern const struct routes routes_server;   /* server.* */
extern const struct routes routes_tokens;   /* tokens.* */
extern const struct routes routes_tools;    /* tools.* */

/* The answer of server.info. */
int routes_server_make_info(const struct daemon *daemon, struct buf *out, struct err *err)
	MUST_CHECK;

/* All of them; ends with NULL. */
extern const struct routes *const routes_all[];
