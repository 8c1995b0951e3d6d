/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk.h - how much of its file system the data directory takes.
 *
 * Counted in blocks, as df does, so a hole takes nothing; a file with several
 * names counts where it is met first. It is no error if something goes away
 * meanwhile; what is mounted inside is not counted.
 */
#pragma once

#include "layers/base/cancel.h"
#include "layers/store.h"

#define DISK_DEPTH_MAX 256 /* a descriptor each; what lies deeper is not counted */

struct disk_entry {
	const char *dir;  /* of the data directory; "" for a file in it, and for itself */
	const char *name; /* in that; "" for the directory itself */
	uint64_t bytes;   /* of blocks, with all that is in it */
};

/* Each entry once: together they are the whole. Non-zero from fn stops and is returned. */
typedef int disk_each_fn(void *ctx, const struct disk_entry *entry, struct err *err);
int disk_each(struct store *store, const struct cancel *cancel, disk_each_fn *fn, void *ctx,
	      struct err *err) MUST_CHECK;
