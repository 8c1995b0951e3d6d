/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slot_priv.h - machines/<slot>/: the name, the ids and the lock of a machine.
 *
 * A slot is held by a flock on its directory as long as its owner lives, so no
 * two machines of any process share one. Its number gives the id range; the id,
 * which names container and cgroup, differs from those of other data
 * directories.
 */
#pragma once

#include "layers/base/err.h"

#include <stdint.h>

#define SLOT_NAME_MAX ((size_t)8)
#define SLOT_ID_MAX ((size_t)64)

struct slot {
	char name[SLOT_NAME_MAX]; /* under machines/ */
	char id[SLOT_ID_MAX];
	uint32_t first_id;
	int dirfd; /* carries the flock; -1 when there is none */
};

#define SLOT_INIT ((struct slot){.dirfd = -1})

/* Make and hold an empty directory. ERR_BUSY when all slots are taken. */
int slot_claim(int machinesfd, struct slot *out, struct err *err) MUST_CHECK;

/* Let go of it. The caller removes the directory before. */
void slot_release(struct slot *slot);

/*
 * Call fn for each directory whose owner is dead, while holding it. All are
 * tried; a failure is logged and otherwise ignored.
 */
typedef int slot_each_fn(void *ctx, const struct slot *slot, struct err *err);
int slot_each_dead(int machinesfd, slot_each_fn *fn, void *ctx, struct err *err) MUST_CHECK;
