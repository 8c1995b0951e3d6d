/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listing.h - a directory tree as text, one line a file, so that two trees can
 * be compared and a difference be read.
 *
 *	usr/bin/ping f 4755 0:0 @1700000000 sha256:... {security.capability=0100...}
 */
#pragma once

#include "layers/base/buf.h"

#define LISTING_MAX ((size_t)32 << 20)

enum {
	LISTING_NO_DIR_TIMES = 1, /* an overlay shows those of the upper directory */
	LISTING_NO_TIMES = 2,
	LISTING_NO_ROOT = 4,
	LISTING_FILE_SECONDS = 8, /* of the times those of files, without fractions */
	LISTING_MARKS = 16,       /* what a tree says of directories without an entry, too */
};

void listing_add(int dirfd, unsigned flags, struct buf *out);

/* A fresh directory under /tmp; scratch_remove() takes it away. */
int scratch_make(char path[static 64]);
void scratch_remove(const char *path);

/* Fail with the first line that differs. */
void listing_check_text(const char *actual, const char *expected);
void listing_check_equal(int actual, int expected, unsigned flags);
