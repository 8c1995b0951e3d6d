/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volume_priv.h - a file system of limited size, for what a machine writes.
 *
 * It lies in a sparse file without a name and is mounted in our mount namespace
 * alone, by a loop device that the kernel frees with the mount. So nothing of
 * it is left when its owner is killed, at whatever moment.
 *
 * Formats: ext4 without a journal: nobody mounts it a second time.
 */
#pragma once

#include "layers/base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* It is full when less than that is left. */
#define VOLUME_ROOM_BYTES ((uint64_t)1024 * 1024)

/*
 * Make one that holds about so many bytes, with its blocks on homefd's disk, and
 * mount it at scratchfd/volume. Its root, or -1: ERR_UNSUPPORTED where this host
 * has no mkfs.ext4, loop device or ext4.
 */
int volume_mount(int homefd, uint64_t bytes, int scratchfd, struct err *err) MUST_CHECK;

/* Whether it is full now; that it was full for a while is not noticed. */
bool volume_is_full(int rootfd);

/*
 * Have all of it written, since only then the kernel says that the disk below
 * has no room. ERR_FULL.
 */
int volume_sync(int rootfd, struct err *err) MUST_CHECK;
