/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live.h - what the bakes that run in this process are at: the statuses that
 * readers see instead of the stored ones, so that no step costs a commit.
 *
 * A stored status is named by its ETag. Once that has changed, what was shown
 * instead of it is shown no more, whoever changed it.
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

/* As status_read(), in a snapshot of its own. */
int live_read(struct live *live, struct store *store, struct str agent_id, int64_t version,
	      struct buf *out, char etag[static STATUS_ETAG_MAX], struct err *err) MUST_CHECK;

DEFINE_AUTO(live, struct live *, live_free);
