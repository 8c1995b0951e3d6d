/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v2_mount.h - a blob that another repository has becomes one of this, too.
 *
 * By ?mount= and ?from= of a POST. It needs the leave to pull from there; without
 * `from`, of any repository that has it. Where it cannot be, for whatever reason,
 * the client sends the blob, as it would have to if nobody had it.
 */
#pragma once

#include "registry/v2.h"

#define V2_MOUNT_NAMES_MAX 10000 /* repositories that are looked at without `from` */

/* Whether it was mounted, and is answered. */
bool v2_mount(struct v2_call *call);
