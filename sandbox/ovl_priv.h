/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ovl_priv.h - one overlay mount, as this kernel takes it and as older ones do.
 *
 * By its options an upper directory is the whole difference: nothing is
 * redirected, indexed or copied in part. Linux takes layers by descriptor from
 * 6.13 on; before, they are named by their links in /proc, on one page.
 *
 * Threads: the calling thread's fsuid, fsgid and secure bits change while it
 * mounts, and are as they were when the call returns.
 */
#pragma once

#include "layers/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define OVL_LAYERS_MAX 500 /* what overlayfs stacks */

/* The descriptors from which one overlay is put together; owns them. */
struct ovl_layers {
	int fds[OVL_LAYERS_MAX]; /* bottom first, one at least */
	size_t count;
	int upperfd; /* both -1 for a read-only view, of two layers at least */
	int workfd;
};

#define OVL_LAYERS_INIT ((struct ovl_layers){.upperfd = -1, .workfd = -1})

void ovl_layers_close(struct ovl_layers *layers);

/*
 * Mount on the directory targetfd, to be written to as `id`. It does not notice
 * another mount that writes to the same upper directory: ovl_probe() does.
 * by_name forces the way that kernels before 6.13 need.
 */
int ovl_mount(const struct ovl_layers *layers, uid_t id, int targetfd, bool by_name,
	      struct err *err) MUST_CHECK;

/*
 * Whether any mount of this kernel, in whatever namespace, uses the upper
 * directory: ERR_BUSY. It mounts the lowest layer alone, and leaves
 * trusted.overlay.origin on the upper directory where it succeeds.
 */
int ovl_probe(const struct ovl_layers *layers, struct err *err) MUST_CHECK;

static inline void auto_ovl_layers_release(struct ovl_layers *slot)
{
	ovl_layers_close(slot);
}
