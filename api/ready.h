/* SPDX-License-Identifier: Apache-2.0 */
/* ready.h - whether the daemon can work, and how full its disk is. */
#pragma once

#include "registry/uploads.h"

/* ERR_FULL where nothing more can be stored, or less than an upload lately found no room for. */
int ready_check(struct store *store, struct uploads *uploads, struct err *err) MUST_CHECK;

/* For metrics; ctx is the store: what the databases occupy, and what their file system has left. */
int ready_metrics(void *ctx, struct buf *page, struct err *err);
