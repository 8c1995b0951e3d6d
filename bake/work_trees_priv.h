/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work_trees_priv.h - the layers that a step stands on and copies from: kept from
 * a collector, and unpacked where their trees are missing.
 */
#pragma once

#include "bake/task.h"
#include "layers/lease.h"

/*
 * Get a resting lease that names them and the step's own key; before anything
 * else, since the askers' leases end with them.
 */
int work_trees_hold(struct store *store, const struct task *task, struct lease **out,
		    struct err *err) MUST_CHECK;

/*
 * Trees are a cache: make again what is missing. ERR_CORRUPT for a layer whose
 * blob is another tar than its diff id says, whatever tree there is by that name.
 */
int work_trees_make(struct store *store, const struct task *task, const struct cancel *cancel,
		    struct err *err) MUST_CHECK;
