/* SPDX-License-Identifier: Apache-2.0 */
/* routes.c - all tables of methods. */
#include "api/routes.h"

const struct routes *const routes_all[] = {
	&routes_server,
	&routes_tokens,
	NULL,
};
