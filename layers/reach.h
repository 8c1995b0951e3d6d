/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reach.h - what a digest leads to: the documents, layers and diff ids of an
 * image, and whether the store has them.
 *
 * A blob that is a small JSON document is read, and what it names is reached,
 * too: an index leads to its manifests, they to configs and layers, a config to
 * its diff ids. The floor above says which digests a document names.
 *
 * It reads a snapshot of blobs/ from reach_open() to reach_close(), so it is
 * kept short: until then no page is used again.
 *
 * Threads: a reach belongs to the thread that opened it.
 * Memory: a digest_set of all that was reached, and a document.
 */
#pragma once

#include "layers/digest_set.h"
#include "layers/store.h"

#define REACH_DOCUMENT_MAX ((size_t)8 * 1024 * 1024) /* no reader takes larger ones */

/* Calls add for each digest that a document names; more than these do no harm. */
typedef int reach_add_fn(void *ctx, const struct digest *digest, struct err *err);
typedef int reach_names_fn(struct str document, reach_add_fn *add, void *ctx, struct err *err);

enum reach_kind {
	REACH_DOCUMENT, /* a blob that may name others */
	REACH_BYTES,    /* any other blob */
	REACH_OTHER,    /* no blob: a diff id, or what is missing */
};

struct reach_item {
	struct digest digest;
	enum reach_kind kind;
	uint64_t size; /* of the blob, bytes */
};

typedef int reach_each_fn(void *ctx, const struct reach_item *item, struct err *err);

struct reach;
int reach_open(struct store *store, reach_names_fn *names, struct reach **out, struct err *err)
	MUST_CHECK;
void reach_close(struct reach *reach);

/*
 * Reach root and all that it leads to. fn (NULL for none) is called for each
 * digest that was not reached before, until it returns non-zero, which is
 * returned.
 */
int reach_from(struct reach *reach, const struct digest *root, reach_each_fn *fn, void *ctx,
	       struct err *err) MUST_CHECK;

/* Give the snapshot back; what was reached stays known, and nothing more can be reached. */
void reach_end(struct reach *reach);

bool reach_has(const struct reach *reach, const struct digest *digest);

/* Forget what was reached, so that the next image is told whole. */
void reach_forget(struct reach *reach);

DEFINE_AUTO(reach, struct reach *, reach_close);
