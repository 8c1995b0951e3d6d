/* SPDX-License-Identifier: Apache-2.0 */
/* staging_priv.h - what killed processes left in tmp/. */
#pragma once

#include "layers/trash_priv.h"

/* Move everything in tmp/ that nobody holds by a flock into trash/. */
int staging_sweep(struct store *store, struct err *err) MUST_CHECK;
