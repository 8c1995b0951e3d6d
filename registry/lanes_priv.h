/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lanes_priv.h - blobs transferred a few at a time.
 *
 * Jobs are taken in order, each by one of LANES threads with a connection of
 * its own; the caller's thread is one of them. The first failure is reported:
 * it raises `stop`, so that the others end, and no job is begun after it.
 */
#pragma once

#include "layers/base/cancel.h"

#include <stddef.h>

#define LANES 3 /* docker's and containerd's number */

/* Do one job; lane is below LANES. */
typedef int lanes_fn(void *ctx, size_t lane, size_t job, struct err *err);

int lanes_run(lanes_fn *fn, void *ctx, size_t jobs, struct cancel *stop, struct err *err)
	MUST_CHECK;
