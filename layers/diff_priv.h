/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_priv.h - the parts of diff_seal().
 *
 *	diff_walk.c     which entries there are, and in which order
 *	diff_compare.c  whether one differs from what lies below
 *	diff_entry.c    an entry into the tar, and its file sealed
 *	diff_links.c    the names of files that have several
 *	diff_tar.c      libarchive, what the content is known by
 *	diff.c          the layer's writer
 */
#pragma once

#include "layers/attrs_priv.h"
#include "layers/base/names.h"
#include "layers/diff.h"
#include "layers/fingerprint.h"

#define DIFF_PATH_MAX ((size_t)128 * 1024)
#define DIFF_BLOCK ((size_t)256 * 1024)    /* read at once */
#define DIFF_NAMES_MAX ((size_t)32 << 20)  /* of all directories on the way down */
#define DIFF_LINKS_MAX ((size_t)24 << 20)  /* paths of files with several names */
#define DIFF_SPARSE_MIN ((int64_t)1 << 20) /* holes of less are written as zeros */
#define DIFF_SPARSE_GRAIN ((int64_t)64 * 1024)
#define DIFF_EXTENTS_MAX 8192 /* readers take a map of 1 MiB, and an extent has up to 30 bytes */

/*
 * Where the tar goes; cut says that the next byte starts the data of a large
 * file, key is what the content is known by.
 */
struct diff_out {
	struct sink *sink;
	int (*cut)(void *ctx, struct err *err);
	void *ctx;
	struct fingerprint_key key;
};

/* One entry, as it is in the tar. */
struct diff_entry {
	struct str path;
	struct stat stat;
	const struct attrs *attrs; /* NULL for none */
	const char *link;          /* of a symlink or hard link, or NULL */
	bool is_hardlink;
};

struct extent {
	int64_t offset;
	int64_t len;
};

/* The parts of a file that hold data; count is 0 for a file without holes. */
struct extents {
	struct extent items[DIFF_EXTENTS_MAX];
	size_t count;
};

/*
 * The parts that are no hole, in order, none touching the next: as the file
 * system has it; or, where there is a block (DIFF_BLOCK) to read into, by the
 * bytes.
 */
void diff_extents_read(struct extents *extents, int fd, const struct stat *stat, char *block);

struct diff_tar;
int diff_tar_open(const struct diff_out *out, struct diff_tar **out_tar, struct err *err)
	MUST_CHECK;
void diff_tar_close(struct diff_tar *tar);
int diff_tar_entry(struct diff_tar *tar, const struct diff_entry *entry, struct err *err)
	MUST_CHECK;
int diff_tar_whiteout(struct diff_tar *tar, struct str path, struct err *err) MUST_CHECK;

/* The header of a file; all of its bytes follow, holes by diff_tar_hole(). */
int diff_tar_file(struct diff_tar *tar, const struct diff_entry *entry,
		  const struct extents *extents, struct err *err) MUST_CHECK;
int diff_tar_data(struct diff_tar *tar, struct str bytes, struct err *err) MUST_CHECK;
int diff_tar_hole(struct diff_tar *tar, int64_t len, struct err *err) MUST_CHECK;
int diff_tar_finish(struct diff_tar *tar, struct digest *content, struct err *err) MUST_CHECK;

DEFINE_AUTO(diff_tar, struct diff_tar *, diff_tar_close);

/* The first name of each file that has several. */
struct diff_link {
	dev_t dev;
	ino_t ino;
	size_t path; /* offset in paths, plus 1; 0 is an empty slot */
	bool below;  /* a layer below has the file under one of its names */
};

struct diff_links {
	struct diff_link *slots;
	size_t cap; /* a power of two, or 0 */
	size_t count;
	struct buf paths;
};

/* The first name, or NULL and path is it from now on. */
int diff_links_find(struct diff_links *links, const struct stat *stat, struct str path,
		    const char **out, struct err *err) MUST_CHECK;

/* Of a file that was found before: a layer below has it. True the first time. */
bool diff_links_mark_below(struct diff_links *links, const struct stat *stat);
void diff_links_done(struct diff_links *links);

/* A directory of the upper, on the way down. */
struct diff_dir {
	struct diff_dir *parent;
	int fd;
	int lowerfd;   /* the directory that it covers, or -1 */
	bool hides;    /* nothing of that is seen: this one, or one above it, is opaque */
	bool emitted;  /* it is in the tar, and so are those above */
	bool whiteout; /* it holds one */
	struct stat stat;
	size_t path_len; /* of its path in diff->path */
	size_t depth;
};

struct diff {
	const struct diff_spec *spec;
	const struct diff_out *out;
	struct diff_tar *tar; /* once there is an entry */
	struct buf path;      /* of what is being looked at */
	struct diff_links links;
	uint64_t entries;
	size_t names_held; /* bytes, on the way down */
	bool blamed;       /* the error names its file */
	uint64_t linked_bytes;
	struct attrs upper;
	struct attrs lower;
	struct extents extents;
	char block[DIFF_BLOCK];
	char other[DIFF_BLOCK];
};

/*
 * diff_compare.c: 1 the same, 0 not, -1. upper's xattrs are in diff->upper. That
 * a file has several names makes no difference.
 */
int diff_same_file(struct diff *diff, const struct diff_dir *dir, const char *name, int fd,
		   const struct stat *stat, const struct stat *lower, struct err *err) MUST_CHECK;
int diff_same_special(struct diff *diff, const struct diff_dir *dir, const char *name,
		      const struct stat *stat, const struct stat *lower, struct err *err)
	MUST_CHECK;
int diff_same_dir(struct diff *diff, const struct diff_dir *dir, struct err *err) MUST_CHECK;

/* What the time of an entry is in the tar. */
void diff_entry_time(const struct diff *diff, struct stat *stat);

/* diff_entry.c: the one at diff->path */
int diff_emit_dir(struct diff *diff, struct diff_dir *dir, struct err *err) MUST_CHECK;
int diff_emit_file(struct diff *diff, struct diff_dir *dir, int fd, const struct stat *stat,
		   struct err *err) MUST_CHECK;
int diff_emit_special(struct diff *diff, struct diff_dir *dir, const char *name,
		      const struct stat *stat, struct err *err) MUST_CHECK;
int diff_emit_whiteout(struct diff *diff, struct diff_dir *dir, const char *name, struct err *err)
	MUST_CHECK;

/* A directory whose entries are done gets its xattrs and its time. */
int diff_seal_dir(struct diff *diff, const struct diff_dir *dir, struct err *err) MUST_CHECK;

/* The root of a layer that has no entry for it, as unpack_tar() leaves it. */
int diff_seal_plain_root(struct diff *diff, const struct diff_dir *dir, struct err *err) MUST_CHECK;

/* Open for reading without leaving a trace in its access time. */
int diff_open(int dirfd, const char *name, int flags, struct err *err) MUST_CHECK;

/* All of diff_seal(), into any sink; out->info is not set. */
int diff_run(const struct diff_spec *spec, const struct diff_out *sink, struct diff_result *out,
	     struct err *err) MUST_CHECK;
