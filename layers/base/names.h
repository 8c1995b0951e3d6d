/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - what a directory holds, in byte order of names.
 */
#pragma once

#include "layers/base/buf.h"

struct names {
	struct buf bytes; /* each with its NUL, as they came */
	const char **at;  /* owned array; the names lie in bytes */
	size_t count;
};

/*
 * Read the directory from its start, by the descriptor's own offset. "." and
 * ".." are left out. ERR_LIMIT above max bytes.
 */
int names_read(int dirfd, size_t max, struct names *out, struct err *err) MUST_CHECK;
void names_done(struct names *names);

static inline void auto_names_release(struct names *slot)
{
	names_done(slot);
}
#define auto_names AUTO(names)
