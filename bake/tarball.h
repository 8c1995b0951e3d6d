/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tarball.h - a context that comes as a tar.
 *
 *	tar bytes -> blob, by its sha256 -> a directory, made by a worker
 *
 * The bytes are kept as they came: plain, gzip or zstd. Their digest is the
 * context's name from then on, for other bakes and other processes. The
 * directory lies among the store's trees and is a cache like them; what is in
 * it is untrusted like a layer, and is unpacked by the same code. Owners in the
 * tar do not count, and names that mean something in a layer mean nothing here.
 *
 * A COPY from it has the key of a COPY from the directory that was packed.
 */
#pragma once

#include "layers/base/cancel.h"
#include "layers/base/sink.h"
#include "layers/digest.h"
#include "layers/meta.h"

struct asker;

#define TARBALL_BYTES_MAX ((uint64_t)64 << 30) /* as many as a layer's, compressed or not */

/*
 * Store what can be read from fd, to its end; storing it twice is one blob, and
 * the second time nothing is written. ERR_INVALID for what is empty or of a
 * kind that is not read.
 */
int tarball_put(struct store *store, int fd, const struct cancel *cancel, struct digest *out,
		struct err *err) MUST_CHECK;

/* The same for what comes from elsewhere. */
int tarball_take(struct store *store, struct source *source, struct digest *out, struct err *err)
	MUST_CHECK;

/*
 * The same for a directory, as a plain tar: in byte order of names, owners and
 * times 0, with the attributes that COPY keeps, and without what a .dockerignore
 * hides. Equal directories have one digest.
 */
int tarball_pack(struct store *store, int dirfd, const struct cancel *cancel, struct digest *out,
		 struct err *err) MUST_CHECK;

/* The same bytes to where the store is not. */
int tarball_pack_to(int dirfd, const struct cancel *cancel, struct sink *sink, struct err *err)
	MUST_CHECK;

/*
 * The directory of a stored context, for reading. ERR_NOT_FOUND where the store
 * has no such blob; ERR_CORRUPT for a tar that would leave its directory.
 */
int tarball_open(const struct asker *asker, const struct digest *digest, int *out_fd,
		 struct err *err) MUST_CHECK;

/* The name of that directory among the trees. No layer's diff id is like it. */
void tarball_tree(const struct digest *digest, struct digest *out);

struct tarball_info {
	struct digest digest;
	int64_t at_ms; /* when it came first */
	uint64_t size; /* bytes */
};

/* 1 it is a stored context, 0 it is not, or -1. */
int tarball_find(struct meta *meta, const struct digest *digest, struct tarball_info *out,
		 struct err *err) MUST_CHECK;

/* Every stored context, until fn returns non-zero, which is returned. fn may forget it. */
typedef int tarball_each_fn(void *ctx, const struct tarball_info *info, struct err *err);
int tarball_each(struct meta *meta, tarball_each_fn *fn, void *ctx, struct err *err) MUST_CHECK;

/* It is of no more use; what it names is garbage from then on. 1, 0 it was none, or -1. */
int tarball_forget(struct meta *meta, const struct digest *digest, struct err *err) MUST_CHECK;
