/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.h - finished images: table `images`, one record a manifest digest.
 *
 * A record is written in the transaction that makes the image known; manifest,
 * config and layers are durable before it. The keys of its steps lie in a table
 * of their own, `images.steps`, since they are only read for logs.
 */
#pragma once

#include "layers/meta.h"
#include "registry/manifest.h"

struct image {
	struct digest manifest;
	uint64_t size; /* bytes: layers, config and manifest */
	size_t layers;
	int64_t created_ms;        /* of the config */
	int64_t baked_ms;          /* when this store first had it */
	struct str slug;           /* borrowed from `record` */
	struct str base;           /* borrowed: as the spec had it */
	struct digest base_digest; /* of its manifest; all zero for scratch, or where unknown */
	json_t *record;            /* owned */
};

/*
 * Each step's key, in order; all zero for one that only changed the
 * configuration. 1 and an array that the caller frees, 0 when the image was not
 * baked here, -1.
 */
int image_find_steps(struct meta *meta, const struct digest *manifest, struct digest **out,
		     size_t *out_count, struct err *err) MUST_CHECK;
int image_put_steps(struct meta *meta, const struct digest *manifest, const struct digest *keys,
		    size_t count, struct err *err) MUST_CHECK;

/* 1 hit, 0 miss, -1. */
int image_find(struct meta *meta, const struct digest *manifest, struct image *out, struct err *err)
	MUST_CHECK;
int image_put(struct meta *meta, const struct image *image, struct err *err) MUST_CHECK;

/* Forget an image, and which its steps were. 1 removed, 0 was not there, -1. */
int image_remove(struct meta *meta, const struct digest *manifest, struct err *err) MUST_CHECK;

typedef int image_each_fn(void *ctx, const struct image *image, struct err *err);
int image_each(struct meta *meta, image_each_fn *fn, void *ctx, struct err *err) MUST_CHECK;
void image_done(struct image *image);

static inline void auto_image_release(struct image *slot)
{
	image_done(slot);
}
#define auto_image AUTO(image)
