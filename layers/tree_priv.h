/* SPDX-License-Identifier: Apache-2.0 */
/* tree_priv.h - trees that a power cut may have damaged, or that were never recorded. */
#pragma once

#include "layers/store_priv.h"

int tree_sweep(struct store *store, struct err *err) MUST_CHECK;
