/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon.h - what the daemon's methods work with. daemon.c starts and stops it.
 *
 * Invariant: all of it is there before the first request comes, and outlives the
 * last one.
 */
#pragma once

#include "api/auth.h"
#include "api/cli.h"
#include "api/gzipper.h"
#include "api/metrics.h"
#include "api/plane.h"
#include "api/server.h"
#include "registry/v2.h"

#define DAEMON_HOSTS_MAX ((size_t)16)

struct daemon {
	const struct cli *cli; /* options, configuration, and where programs are */
	struct store *store;
	struct auth *auth;
	struct metrics *metrics;
	struct server *server;
	struct plane *plane;
	struct v2 v2;                        /* the registry */
	struct gzipper *gzipper;             /* its, for old clients */
	const char *hosts[DAEMON_HOSTS_MAX]; /* names that a request's Host may have */
	size_t host_count;
	struct buf info; /* what server.info says */
	int64_t started_ms;
	const char *version;
};
