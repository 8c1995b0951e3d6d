/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup_priv.h - a machine's cgroup: made by the runtime at /NAME of each
 * hierarchy, ended and removed by us.
 *
 * rootfd is /sys/fs/cgroup: one version 2 hierarchy, or a directory of version
 * 1 hierarchies (and, on a hybrid host, an empty version 2 one).
 */
#pragma once

#include "layers/base/err.h"

#define CGROUP_END_MS 10000

int cgroup_open_root(struct err *err) MUST_CHECK;

/*
 * Kill every process in it and remove it from all hierarchies. Nothing to do
 * is success. ERR_TIMEOUT when something in it does not die.
 */
int cgroup_end(int rootfd, const char *name, struct err *err) MUST_CHECK;
