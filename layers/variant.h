/* SPDX-License-Identifier: Apache-2.0 */
/*
 * variant.h - a layer's tar as a blob of the other codec.
 *
 * A layer is made or pulled in one codec. Where the other is needed a variant
 * is made of the stored blob, frame by frame, without running or unpacking
 * anything, and is remembered. A layer of ours has the same chunks in either
 * codec, so its variant is the very blob that a step would have made directly.
 *
 * A record may outlive its blob for a while; it is a miss then.
 *
 * To know a tar's name is not to have the tar: who finds a variant by a diff id
 * has that from a record of ours, or from a proof (proof.h).
 */
#pragma once

#include "layers/base/cancel.h"
#include "layers/codec.h"
#include "layers/digest.h"
#include "layers/meta.h"

struct variant {
	struct digest blob;
	uint64_t size; /* bytes of it */
};

/* 1 hit, 0 miss, -1. */
int variant_find(struct store *store, struct meta *meta, const struct digest *diff_id,
		 enum layer_codec codec, struct variant *out, struct err *err) MUST_CHECK;
int variant_put(struct meta *meta, const struct digest *diff_id, enum layer_codec codec,
		const struct variant *variant, struct err *err) MUST_CHECK;

/*
 * Every record, until fn returns non-zero, which is returned. A variant is kept
 * as long as its diff id is.
 */
typedef int variant_each_fn(void *ctx, const struct digest *diff_id, const struct variant *variant,
			    struct err *err);
int variant_each(struct meta *meta, variant_each_fn *fn, void *ctx, struct err *err) MUST_CHECK;

/* Forget those whose blobs are gone. */
int variant_sweep(struct store *store, struct err *err) MUST_CHECK;

/* A layer that the store has. */
struct variant_source {
	struct digest blob;
	struct digest diff_id;       /* as somebody says; nothing is found by it unproven */
	uint64_t size;               /* bytes of the blob */
	uint64_t max_bytes;          /* of the tar: more is ERR_LIMIT */
	const struct cancel *cancel; /* NULL for none */
};

/*
 * The layer in this codec; durable and remembered when this returns 0. A layer
 * whose first bytes show that codec stays as it is. ERR_CORRUPT where the
 * blob's tar is not the one of the diff id.
 */
int variant_make(struct store *store, const struct variant_source *source, enum layer_codec codec,
		 struct variant *out, struct err *err) MUST_CHECK;
