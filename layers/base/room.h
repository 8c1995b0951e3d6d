/* SPDX-License-Identifier: Apache-2.0 */
/*
 * room.h - whether a file system is full, by asking it.
 *
 * The blocks that it calls free do not say what it holds back, or for whom, and
 * ENOSPC is also its answer to what it could not hold if it were empty.
 */
#pragma once

#include "layers/base/err.h"

#include <stddef.h>

/* ERR_FULL unless one more file of so many bytes fits beside dirfd's. Nobody sees the file. */
int room_check(int dirfd, size_t bytes, struct err *err) MUST_CHECK;

/*
 * Record that an xattr of size bytes could not be set, and why: the disk is
 * full, or holds no such xattr (ERR_UNSUPPORTED). dirfd is any directory of the
 * file's file system. Always returns -1.
 */
int room_xattr_failed(int dirfd, int os, const char *name, size_t size, struct err *err);
