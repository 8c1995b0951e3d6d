/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path.h - paths as text. Nothing here touches a file system.
 */
#pragma once

#include "layers/base/buf.h"

#include <stdbool.h>

#define PATH_TEXT_MAX ((size_t)4096) /* PATH_MAX: the kernel takes no more */

/*
 * Join name to the absolute path base (an absolute name replaces it) and clean
 * the result: one slash between components, no ".", ".." taken lexically and
 * stopped at the root, no slash at the end. Always absolute. ERR_LIMIT above
 * PATH_TEXT_MAX.
 */
int path_join(struct str base, struct str name, struct buf *out, struct err *err) MUST_CHECK;

/* The part behind the last slash; "" for "/" and for names that end in one. */
struct str path_base(struct str path);

/*
 * The next component of *rest, which shrinks to what follows. Empty components
 * and "." are skipped. False when there is none.
 */
bool path_next(struct str *rest, struct str *out);

/*
 * Bytes that somebody else chose, fit for a terminal: ASCII's control
 * characters become '?', and a long one is cut. Returns text.
 */
#define PATH_SHOWN_MAX ((size_t)256)
const char *path_show(struct str path, char text[static PATH_SHOWN_MAX]);
