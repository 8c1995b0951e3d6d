/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outlet.h - a stream to a reader who may be slow, or gone.
 *
 * Writing blocks for as long as the reader takes, until the cancel is raised;
 * after that, what the reader does not take at once is dropped, so that a bake
 * whose display nobody reads can still end and clean up. Lines are written
 * whole.
 */
#pragma once

#include "layers/base/cancel.h"

#include <stdio.h>

/* fd and cancel are borrowed; fclose() the stream. NULL for want of memory. */
FILE *outlet_open(int fd, const struct cancel *cancel);
