/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine_sweep.c - apart from machine.c, so that a program that only sweeps
 * does not load a machine's libraries.
 */
#include "sandbox/cgroup_priv.h"
#include "sandbox/machine.h"
#include "sandbox/slot_priv.h"

static int machine_sweep_one(void *ctx, const struct slot *slot, struct err *err)
{
	struct store *store = ctx;
	auto_close int cgroupfd = cgroup_open_root(err);

	if (cgroupfd < 0 || cgroup_end(cgroupfd, slot->id, err) < 0)
		return -1;
	return store_set_aside(store, store_dirfd(store, STORE_MACHINES), slot->name, err);
}

int machine_sweep(struct store *store, struct err *err)
{
	return slot_each_dead(store_dirfd(store, STORE_MACHINES), machine_sweep_one, store, err);
}
