/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweeper.h - a thread that unlinks what steps have set aside, beside the bake.
 *
 * A step's machine leaves a dozen directories, and a disk may take
 * milliseconds for each: nobody shall wait for that. What has not gone when
 * the bake ends lies in trash/ until the next one.
 */
#pragma once

#include "layers/store.h"

struct sweeper;

/*
 * Settle trees and sweep the store now, and sweep again after each
 * sweeper_wake(). The store is borrowed.
 */
int sweeper_start(struct store *store, struct sweeper **out, struct err *err) MUST_CHECK;
void sweeper_wake(struct sweeper *sweeper);

/* Wait for the end of what is being done, at most so long, and stop. NULL is none. */
void sweeper_stop(struct sweeper *sweeper, int grace_ms);
