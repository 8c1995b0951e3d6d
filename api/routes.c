/* SPDX-License-Identifier: Apache-2.0 */
/* routes.c - all tables of methods. */
#include "api/routes.h"

const struct routes *const routes_all[] = {
	&routes_agents, &routes_bakes,  &routes_sessions, &routes_events, &routes_contexts,
	&routes_server, &routes_mirror, &routes_tokens,   &routes_tools,  NULL,
};
