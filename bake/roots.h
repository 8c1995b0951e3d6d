/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roots.h - the roots of the store: everything that a record names.
 *
 * What no root leads to (layers/reach.h, registry/document.h) is garbage.
 * Collection, the account of space and the check of the store go through these.
 */
#pragma once

#include "layers/digest.h"
#include "layers/meta.h"
#include "registry/repository.h"

enum root_kind {
	ROOT_TAG,     /* name is the reference; digest what it stands for, image the one chosen */
	ROOT_BASE,    /* digest is the manifest that an image was baked on, image that one's */
	ROOT_IMAGE,   /* name is the slug, perhaps empty; digest the manifest; baked here */
	ROOT_STEP,    /* digest is its layer's blob, diff_id the layer's; key its own */
	ROOT_LOG,     /* digest is a log's blob, key the step's */
	ROOT_DRAFT,   /* name is a rebake's id: its layer, as of a step; or a blob beside it */
	ROOT_CONTEXT, /* digest is a tar's blob (tarball.h), diff_id its tree's */
	ROOT_HELD,    /* name is a repository, item its record of the blob digest */
	ROOT_VARIANT, /* digest is a blob of the layer diff_id in the other codec */
};

struct root {
	enum root_kind kind;
	struct str name; /* borrowed */
	struct digest digest;
	struct digest image;   /* of a tag: a manifest; the digest itself, or in that index */
	struct digest key;     /* of a step */
	struct digest diff_id; /* of a step's layer */
	int64_t at_ms;         /* when it was tagged, baked, made or put; 0 for a log */
	uint64_t size;         /* of an image, a layer or a context, bytes */
	const struct repository_item *item; /* borrowed; NULL of all other kinds */
};

/*
 * Every root in the snapshot, until fn returns non-zero, which is returned; the
 * variants last, when it is known what else is kept. Steps without a layer are
 * no roots.
 */
typedef int root_each_fn(void *ctx, const struct root *root, struct err *err);
int roots_each(struct meta *meta, root_each_fn *fn, void *ctx, struct err *err) MUST_CHECK;
