/* SPDX-License-Identifier: Apache-2.0 */
/*
 * room.h - whether a file system is full, by asking it.
 *
 * The count of its free blocks leaves out what it reserves, and for whom; and
 * ENOSPC is also its answer to what would not fit if it were empty.
 */
#pragma once

#include "layers/base/err.h"

#include <stddef.h>

/* ERR_FULL unless a file of so many bytes fits into the directory. It is made without a name. */
int room_check(int dirfd, size_t bytes, struct err *err) MUST_CHECK;

/*
 * Record that an xattr of size bytes could not be set, and why: the disk is
 * full, or holds no such xattr (ERR_UNSUPPORTED). dirfd is any directory of the
 * file's file system. Always returns -1.
 */
int room_xattr_failed(int dirfd, int os, const char *name, size_t size, struct err *err);
