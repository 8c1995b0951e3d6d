/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upstreams.h - the daemon's mirror, as the configuration has it: mirror.upstreams,
 * with the credentials that pulls have, too.
 */
#pragma once

#include "api/cli.h"
#include "api/server.h"
#include "registry/mirror.h"

/* NULL where no upstream is configured. The others outlive it. */
int upstreams_open(const struct cli *cli, struct store *store, struct server *server,
		   struct vacancy *vacancy, struct mirror **out, struct err *err) MUST_CHECK;

/* A metrics_source_fn. ctx is the mirror. */
int upstreams_metrics(void *ctx, struct buf *page, struct err *err) MUST_CHECK;
