/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy_priv.h - a COPY while it walks a source. copy.c decides where things go,
 * copy_write.c makes them there.
 */
#pragma once

#include "bake/context_priv.h"
#include "bake/copy.h"
#include "bake/listing_priv.h"
#include "bake/place_priv.h"

/* A directory that is being filled. */
struct level {
	int fd;
	char *path; /* owned: in the root, absolute, without symlinks */
};

struct copy {
	const struct copy_spec *spec;
	int rootfd;
	struct place_new parents; /* of directories that no source has */
	struct context_hash hash;
	struct listing_draft draft;     /* the listing of what is copied, if one is wanted */
	struct context_hash *file_hash; /* of the file at hand, unless it is known */
	struct level levels[CONTEXT_DEPTH_MAX + 1]; /* 0 is where the source's top goes */
	size_t depth;                               /* levels in use */
	char name[NAME_MAX + 1]; /* of a source that is a file, at its destination */
	int outfd;               /* the file that is being written */
	struct timespec time;    /* the top's mtime before we worked in it */
	bool whole;              /* the top becomes the source itself */
};

/* The directory that is being filled now. */
static inline struct level *copy_top(struct copy *copy)
{
	return &copy->levels[copy->depth - 1];
}

/* Put the path in the root before the error. Returns -1. */
static inline int copy_wrong(struct copy *copy, const char *name, struct err *err)
{
	return err_ctx(err, "%s/%s", copy_top(copy)->path, name);
}

/* Count an entry in the digest and in the list, which is cleared when it grows too long. */
void copy_count(struct copy *copy, const struct source_entry *entry);

/* What source_walk() visits, made in the top level and counted in the digest. */
int copy_file(void *ctx, struct source_entry *entry, struct err *err) MUST_CHECK;
int copy_link(void *ctx, const struct source_entry *entry, struct err *err) MUST_CHECK;
int copy_node(void *ctx, const struct source_entry *entry, struct err *err) MUST_CHECK;
void copy_say_socket(void *ctx, const struct source_entry *entry);

/* Give an open file or directory its owner, mode, xattrs and times. */
int copy_dress(struct copy *copy, int fd, const struct source_entry *entry, struct err *err)
	MUST_CHECK;
