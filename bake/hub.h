/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hub.h - the askers of a running step, and its log.
 *
 * A step's worker listens on a socket; every asker that connects gets the
 * whole log from its first byte and then the result. No asker waits for
 * another and none can slow the step: the log lies in a spool file, and each
 * asker reads it at its own pace. When the last asker has left, the hub raises
 * its cancel.
 *
 * Threads: one inside, from hub_start() to hub_finish(). Memory: one frame of
 * HUB_FRAME_MAX an asker. Disk: log_max bytes; of a longer log the middle is left
 * out (spool.h).
 */
#pragma once

#include "bake/spool.h"
#include "bake/wire.h"

#define HUB_ASKERS_MAX 256
#define HUB_FRAME_MAX ((size_t)64 * 1024)
#define HUB_LINGER_MS 60000               /* for an asker that does not read the rest */
#define HUB_LOG_MAX ((uint64_t)256 << 20) /* a step in a loop must not fill the disk */

struct hub;
struct mask;

/*
 * control is the connection of the asker that started us, listener the socket
 * of the others (-1 for none); both become the hub's when this returns 0.
 * spoolfd is an empty file, borrowed; log_max is in bytes. The cancel is the
 * caller's and outlives the hub.
 */
int hub_start(int control, int listener, int spoolfd, uint64_t log_max, struct cancel *cancel,
	      struct hub **out, struct err *err) MUST_CHECK;

/* Hide secrets in the log, from before the first write; the mask is lent until hub_finish(). */
void hub_hide(struct hub *hub, struct mask *mask);

/* Where the step writes its output: the write end of a pipe, borrowed. */
int hub_log_fd(const struct hub *hub);

/*
 * No more log will come. Returns when all of it is in the spool, which is lent;
 * -1 where it could not be kept.
 */
int hub_end_log(struct hub *hub, const struct spool **out, struct err *err) MUST_CHECK;

/* Give everyone this last frame, wait until they have it, and stop. */
void hub_finish(struct hub *hub, enum wire_type type, const json_t *answer);
