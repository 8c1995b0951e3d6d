/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door.h - the checks that each request passes: health, the Host, the token,
 * and then the method that it asks for.
 *
 * 	/healthz    200 while the process serves          nobody is asked who he is
 * 	/readyz     200 while the store can be written    the same
 * 	/metrics    Prometheus' text                      read
 * 	/v1/NAME    a method (route.h)                    what its row says
 * 	/v2/        the registry (door_v2.h)              what the repository asks for
 *
 * A browser's preflight (cors.h) has no token.
 */
#pragma once

#include "api/daemon.h"
#include "api/route.h"

struct door {
	struct http_handler handler;
	struct daemon *daemon;
	const struct routes *const *routes;
};

void door_init(struct door *door, struct daemon *daemon, const struct routes *const *routes);
