/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etc_priv.h - resolv.conf, hosts and hostname, which belong to the machine
 * and not to the image.
 *
 * Each is a file of ours, mounted over the image's own name in the merged root;
 * where that is a link, dangling or not, over the link itself, so that nothing
 * is made at its target. The `base` layer below all has the names for images
 * that do not. Only where the image has deleted one is a target made in the
 * upper directory; etc_unmount() takes it away again.
 */
#pragma once

#include "layers/base/buf.h"

#include <stdbool.h>
#include <sys/types.h>

#define ETC_FILES 3
#define ETC_TEXT_MAX ((size_t)64 << 10)

struct etc {
	int rootfd;    /* the merged root, borrowed */
	int scratchfd; /* where the files lie, borrowed */
	uid_t owner;
	int dirfd;            /* /etc of the merged root, once mounted; else -1 */
	bool made[ETC_FILES]; /* we made this target, and remove it again */
};

/*
 * Open dirfd/base, a layer with the fixed names: etc/resolv.conf, dev, proc, …
 * Whatever of it is missing is made; nobody ever writes to it, so machines share
 * it.
 */
int etc_open_base(int dirfd, struct err *err) MUST_CHECK;

/* Write the files and, the first time, mount them. */
int etc_mount(struct etc *etc, struct str resolv_conf, struct str hostname, struct err *err)
	MUST_CHECK;

void etc_unmount(struct etc *etc);
