/* SPDX-License-Identifier: Apache-2.0 */
/*
 * context.h - the directory that COPY reads, and the digest of what it reads.
 *
 * Sources are resolved below the context by the kernel: "../" and a leading
 * "/" stop at its root; a source that is a symlink is followed inside the
 * root, links met inside a copied directory stay links. The digest covers
 * names, types, modes, link targets, xattrs and bytes; owners are 0:0 and
 * times do not count, so checkout place, host user and mtime never matter. A
 * directory source contributes its content and, below the top, its
 * directories' modes.
 *
 * Only what COPY names is read. Devices, sockets and fifos are refused by name,
 * and so is a context with a .dockerignore until its patterns are kept.
 * Attributes are user.* and security.capability. A file that changes while it
 * is read is ERR_UNAVAILABLE.
 */
#pragma once

#include "bake/instruction.h"
#include "layers/base/cancel.h"
#include "layers/digest.h"

#define CONTEXT_ENTRIES_MAX 5000000 /* entries of one COPY */
#define CONTEXT_DEPTH_MAX 256       /* a descriptor each on both sides of a copy */

/* ERR_REFUSED for a context that cannot be read as its owner means it. */
int context_check(int contextfd, struct err *err) MUST_CHECK;

/*
 * The digest of the sources of one COPY (expanded texts), in order.
 * ERR_NOT_FOUND names the source as written and the nearest name that exists.
 */
int context_digest(int contextfd, const char *const *sources, size_t count,
		   const struct cancel *cancel, struct digest *out, struct err *err) MUST_CHECK;
