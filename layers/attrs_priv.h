/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attrs_priv.h - the xattrs of one file: those that a layer keeps, and strays,
 * which are overlayfs' or a security module's own.
 *
 * A struct attrs is used for file after file, and holds those of the last.
 */
#pragma once

#include "layers/overlay_priv.h"

#define ATTRS_MAX 128
#define ATTRS_BYTES_MAX ((size_t)512 * 1024) /* a reader of tars takes 1 MiB of headers */

/* A file: an open one, or a name that is not followed. */
struct file_ref {
	int fd; /* or -1 */
	int dirfd;
	const char *name;
};

struct attr {
	size_t name; /* offsets in bytes */
	size_t value;
	size_t len;
};

struct attrs {
	struct attr items[ATTRS_MAX]; /* kept ones, by name */
	size_t count;
	bool opaque; /* overlayfs' own mark, which is a stray too */
	struct buf bytes;
	struct buf strays; /* names of the others, each with its NUL */
	char list[TREE_XATTR_MAX];
};

void attrs_init(struct attrs *attrs);
void attrs_done(struct attrs *attrs);

/*
 * Read those of a file of this mode. Redirects and metacopies are
 * ERR_UNSUPPORTED: their directory is not the whole difference.
 */
int attrs_read(struct attrs *attrs, const struct file_ref *file, mode_t mode, struct err *err)
	MUST_CHECK;

const char *attrs_name(const struct attrs *attrs, size_t i);
struct str attrs_value(const struct attrs *attrs, size_t i);

/* The same xattrs are kept of both. */
bool attrs_equal(const struct attrs *a, const struct attrs *b);

/* Remove the strays from the file that they were read from. */
int attrs_strip(const struct attrs *attrs, const struct file_ref *file, struct err *err) MUST_CHECK;

/* Remove the kept ones too. */
int attrs_strip_all(const struct attrs *attrs, const struct file_ref *file, struct err *err)
	MUST_CHECK;
