/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names_priv.h - what a directory holds, in byte order of names.
 */
#pragma once

#include "layers/base/buf.h"

#define NAMES_BYTES_MAX ((size_t)32 * 1024 * 1024) /* of one directory: a million names */

struct names {
	struct buf bytes;
	const char **at; /* owned array; the names lie in bytes */
	size_t count;
};

/* The descriptor's own offset is not used. ERR_LIMIT above the ceiling. */
int names_read(int dirfd, struct names *out, struct err *err) MUST_CHECK;
void names_done(struct names *names);

static inline void auto_names_release(struct names *slot)
{
	names_done(slot);
}
#define auto_names AUTO(names)
