/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upkeep.h - what a daemon does for its store by itself: it removes old events
 * and uploads that nobody goes on with, and collects by the configuration's
 * policy (bake/gc.h), each hour and whenever space is short; an upstream's images
 * that take more than they may go before (mirror.h). It also gives freed memory
 * back to the host.
 *
 * Threads: one of its own. Its errors are logged.
 */
#pragma once

#include "api/config.h"
#include "registry/v2.h"

#define UPKEEP_EVENTS_KEEP 1000000 /* where the configuration says nothing of events */

struct upkeep;

/* All of that outlives it. */
int upkeep_start(const struct v2 *registry, const struct config *config, struct upkeep **out,
		 struct err *err) MUST_CHECK;

/* Stop it soon, whatever it is doing. NULL is ignored. */
void upkeep_stop(struct upkeep *upkeep);

/* Remove the events that the configuration does not keep, unless it is cancelled. */
int upkeep_trim_events(struct store *store, const struct config *config,
		       const struct cancel *cancel, struct err *err) MUST_CHECK;
