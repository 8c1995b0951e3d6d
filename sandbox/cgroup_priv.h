/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup_priv.h - a machine's cgroup: made by the runtime at /NAME of each
 * hierarchy, ended and removed by us.
 *
 * rootfd is /sys/fs/cgroup: one version 2 hierarchy, or a directory of version
 * 1 hierarchies (and, on a hybrid host, an empty version 2 one).
 */
#pragma once

#include "layers/base/buf.h"

#define CGROUP_END_MS 10000

int cgroup_open_root(struct err *err) MUST_CHECK;

/*
 * Kill every process in it and remove it, with the cgroups below it, from all
 * hierarchies. It is no error if there is none. ERR_TIMEOUT when a process in
 * it does not die.
 */
int cgroup_end(int rootfd, const char *name, struct err *err) MUST_CHECK;

/*
 * Whether machines can have limits of this kind ("pids"): version 2 lists its
 * controllers, in version 1 each has a directory.
 */
bool cgroup_has_controller(int rootfd, const char *name);

/*
 * The first move between cgroups after a pause waits for an RCU grace period, 6
 * to 14 ms, and those that follow it closely do not. So make a move that
 * changes nothing, ahead of the one that counts: write ourselves into our own
 * cgroup. own is the text of /proc/self/cgroup. Returns whether there was one
 * to write to.
 */
bool cgroup_hasten(int rootfd, struct str own);
