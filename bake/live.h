/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live.h - the progress of the bakes that run in this process: statuses that
 * readers see instead of the stored ones, so that no step costs a commit.
 *
 * A live status replaces the stored one with a given ETag. Once the stored one
 * has changed, whoever changed it, the live one is not shown any more.
 *
 * Threads: any; a place belongs to one.
 */
#pragma once

#include "bake/status.h"

struct live;

/* For so many bakes at once, each in a place from 0. */
struct live *live_new(size_t places);
void live_free(struct live *live);

/* Show status, with this progress, instead of the one that is stored under that ETag. */
int live_show(struct live *live, size_t place, const char *stored, const json_t *status,
	      const struct status_progress *progress, struct err *err) MUST_CHECK;
void live_hide(struct live *live, size_t place);

/* As status_read(), with what is shown instead. */
int live_read(struct live *live, struct meta *meta, struct str agent_id, int64_t version,
	      struct buf *out, char etag[static STATUS_ETAG_MAX], struct err *err) MUST_CHECK;

DEFINE_AUTO(live, struct live *, live_free);
