/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xattrs_priv.h - the extended attributes that COPY keeps: user.* and
 * security.capability, sorted by name. Attributes of overlayfs and of the
 * host's security modules are not copied.
 */
#pragma once

#include "layers/base/buf.h"

#include <stdint.h>

#define XATTRS_MAX 256 /* of one file */

struct xattr {
	char *name;       /* owned */
	struct buf value; /* owned */
};

struct xattrs {
	struct xattr *at; /* owned */
	size_t count;
};

/* A file system without attributes has none. */
int xattrs_read(int fd, struct xattrs *out, struct err *err) MUST_CHECK;

/* Called for one that the file system does not take, and why (errno). */
typedef void xattrs_lost_fn(void *ctx, const struct xattr *xattr, int os);

/*
 * dirfd is a directory of the file's file system. What that does not take is
 * told to `lost`, and left out; a full disk alone is an error. A file capability
 * becomes the one of the machine whose ids begin at first_id, which the idmapped
 * layer stores as root's (capabilities(7), "Namespaced file capabilities"); 0 is
 * no machine.
 */
int xattrs_write(int dirfd, int fd, const struct xattrs *xattrs, uint32_t first_id,
		 xattrs_lost_fn *lost, void *ctx, struct err *err) MUST_CHECK;
void xattrs_done(struct xattrs *xattrs);

static inline void auto_xattrs_release(struct xattrs *slot)
{
	xattrs_done(slot);
}
#define auto_xattrs AUTO(xattrs)
