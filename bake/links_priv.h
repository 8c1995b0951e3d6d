/* SPDX-License-Identifier: Apache-2.0 */
/* links_priv.h - files that were met before under another name. */
#pragma once

#include "layers/base/buf.h"

#include <sys/stat.h>

#define LINKS_MAX ((size_t)1 << 20)
#define LINKS_PATHS_MAX ((size_t)64 * 1024 * 1024) /* bytes of their paths */

struct link {
	dev_t dev;
	ino_t ino;
	size_t path; /* offset in paths, plus one; 0 is a free slot */
};

struct links {
	struct link *slots; /* owned; a power of two, at most half full */
	size_t cap;
	size_t count;
	struct buf paths;
};

/*
 * 1 and the path under which this file was met before, lent until the next
 * call; or 0, and path is remembered. Files of a single name are not.
 */
int links_meet(struct links *links, const struct stat *st, struct str path, const char **out,
	       struct err *err) MUST_CHECK;
void links_done(struct links *links);
