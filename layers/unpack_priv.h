/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack_priv.h - the parts of unpack_tar().
 */
#pragma once

#include "layers/dirs_priv.h"
#include "layers/twin_priv.h"
#include "layers/unpack.h"

struct archive;
struct archive_entry;

#define TAR_NAME_MAX ((size_t)64 * 1024)       /* TREE_DEPTH_MAX names of 255 bytes */
#define WHITEOUTS_BYTES_MAX ((size_t)24 << 20) /* half a million of them */
#define WHITEOUTS_DIRS_MAX ((size_t)128 * 1024)
#define HEADERS_MAX ((size_t)4 << 20) /* of an entry; at most 1 MiB of each kind, and its map */

/* What an entry's name says it is. */
enum tar_kind {
	TAR_ENTRY,
	TAR_ROOT,     /* "./" */
	TAR_WHITEOUT, /* base is the name that is gone */
	TAR_OPAQUE,   /* dir is what is opaque */
	TAR_IGNORED,  /* aufs' own */
};

/* A name in its normal form; dir and base lie in path. */
struct tar_name {
	enum tar_kind kind;
	struct buf path;  /* components, one slash between them */
	struct str dir;   /* "" is the root */
	const char *base; /* ends with NUL; "" for the root */
	bool plain;       /* it is no layer's: there are no whiteouts */
};

/* An absolute name starts at the tree's root; one with ".." in it is ERR_CORRUPT. */
int unpack_name_parse(struct tar_name *name, const char *raw, struct err *err) MUST_CHECK;

/* The same for a hard link's target, which is no whiteout. */
int unpack_name_parse_target(struct tar_name *name, const char *raw, struct err *err) MUST_CHECK;

/* What an entry's headers say of its link: target.ptr is NULL where pax has none. */
struct pax_link {
	char type; /* typeflag; '1' is a hard link, '2' a symlink */
	struct str target;
};

void unpack_pax_find_link(struct str headers, struct pax_link *out);

/*
 * Whiteouts wait until all entries are there, so that their order in the tar
 * means nothing.
 */
struct whiteout_group {
	size_t dir;   /* offset in names */
	size_t first; /* of the names, each with its NUL; "" is the directory itself */
	size_t count;
};

struct whiteouts {
	struct buf names;
	struct whiteout_group *groups;
	size_t count;
};

int unpack_whiteouts_add(struct whiteouts *whiteouts, struct str dir, const char *base,
			 struct err *err) MUST_CHECK;
int unpack_whiteouts_apply(struct whiteouts *whiteouts, struct dirs *dirs, struct err *err)
	MUST_CHECK;
void unpack_whiteouts_done(struct whiteouts *whiteouts);

struct unpack {
	struct source *tar;
	struct twin *twin; /* or NULL */
	uint64_t bytes_left;
	uint64_t offset;   /* in the tar, of what follows lent */
	struct str lent;   /* what the source gave last */
	struct buf before; /* what came before lent, from the current header on */
	bool in_header;
	size_t header_bytes;   /* read since it began */
	struct buf link;       /* an entry's link, where libarchive lost it */
	struct err source_err; /* what the source or its ceiling said */
	bool source_failed;
	bool default_acls; /* some directory has one, and what is made below inherits it */
	struct archive *archive;
	struct dirs dirs;
	struct tar_name name;
	struct tar_name target;
	struct whiteouts whiteouts;
};

/* Make what the entry says, under the name in unpack->name. */
int unpack_entry(struct unpack *unpack, struct archive_entry *raw, struct err *err) MUST_CHECK;

/*
 * unpack_tar() without the bytes of files: they are compared with the twin's,
 * and each file is a hole of their size.
 */
int unpack_outline(int treefd, struct source *tar, const struct unpack_limits *limits,
		   struct twin *twin, struct err *err) MUST_CHECK;

/* Write an entry's data into its new file, or compare it. */
int unpack_data(struct unpack *unpack, struct archive_entry *raw, int fd, struct err *err)
	MUST_CHECK;

/* Remove what has the name in the directory that we are in, if anything has. */
int unpack_clear(struct dirs *dirs, const char *name, struct err *err) MUST_CHECK;
