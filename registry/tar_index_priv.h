/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar_index_priv.h - where the files of an archive of images lie.
 *
 * Such an archive has its entries in any order, so it is read once for its
 * headers, and then by name. Nothing is ever made under a name that an archive
 * has.
 *
 * A name is kept in normal form (without "./", a "/" in front or a doubled
 * one). A name with "..", and what is neither a file nor a link, cannot be
 * found. Links lead from name to name within the archive (`docker save` wrote
 * them once). Two files of one name are ERR_CORRUPT: two readers would see two
 * images.
 *
 * Threads: an index that is open may be read by several.
 */
#pragma once

#include "layers/base/sink.h"
#include "registry/tar_source_priv.h"

#define TAR_INDEX_ENTRIES_MAX 50000 /* 500 layers, three files each, of 33 images */
#define TAR_INDEX_NAME_MAX ((size_t)4096)
#define TAR_INDEX_NAMES_MAX ((size_t)16 * 1024 * 1024) /* bytes of all names and targets */
#define TAR_INDEX_LINKS_MAX 8

struct tar_file {
	uint64_t offset;
	uint64_t size; /* bytes */
};

struct tar_index;
int tar_index_open(const struct tar_source *source, struct tar_index **out, struct err *err)
	MUST_CHECK;
void tar_index_close(struct tar_index *index);

/* The file of that name, through links. 1, 0 there is none, -1. */
int tar_index_find(const struct tar_index *index, struct str name, struct tar_file *out,
		   struct err *err) MUST_CHECK;

/* The same, and its bytes. ERR_NOT_FOUND; ERR_LIMIT at out's ceiling. */
int tar_index_read(const struct tar_index *index, struct str name, struct buf *out, struct err *err)
	MUST_CHECK;

/* Its first len bytes, or as many as there are. */
ssize_t tar_index_peek(const struct tar_index *index, const struct tar_file *file, void *bytes,
		       size_t len, struct err *err) MUST_CHECK;

/* All of its bytes. */
int tar_index_copy(const struct tar_index *index, const struct tar_file *file, struct sink *out,
		   struct err *err) MUST_CHECK;

DEFINE_AUTO(tar_index, struct tar_index *, tar_index_close);
