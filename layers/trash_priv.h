/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trash_priv.h - the recursive delete: hostile trees, as root, one entry at a
 * time.
 *
 * What goes is renamed into trash/ first, so its name is free at once and a
 * killed process leaves nothing half there. Symlinks are unlinked and never
 * followed; a mount point stays, and so does what leads to it. Any number of
 * processes may empty the trash at once.
 */
#pragma once

#include "layers/store_priv.h"

#define TRASH_ALL UINT64_MAX

/* Rename dirfd/name into trash/. 1, or 0 where there is no such name. */
int trash_take(struct store *store, int dirfd, const char *name, struct err *err) MUST_CHECK;

/* Unlink at most `most` entries of what is in trash/. */
int trash_empty(struct store *store, uint64_t most, const struct cancel *cancel, struct err *err)
	MUST_CHECK;
