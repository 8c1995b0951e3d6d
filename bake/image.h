/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.h - finished images: table `images`, one record a manifest digest.
 *
 * A record is written in the transaction that makes the image known; manifest,
 * config and layers are durable before it.
 */
#pragma once

#include "layers/meta.h"
#include "registry/manifest.h"

struct image {
	struct digest manifest;
	uint64_t size; /* bytes: layers, config and manifest */
	size_t layers;
	int64_t created_ms; /* of the config */
	int64_t baked_ms;   /* when this store first had it */
	struct str slug;    /* borrowed from `record` */
	struct str base;    /* borrowed: as the spec had it */
	json_t *record;     /* owned */
};

/* 1 hit, 0 miss, -1. */
int image_find(struct meta *meta, const struct digest *manifest, struct image *out, struct err *err)
	MUST_CHECK;
int image_put(struct meta *meta, const struct image *image, struct err *err) MUST_CHECK;

typedef int image_each_fn(void *ctx, const struct image *image, struct err *err);
int image_each(struct meta *meta, image_each_fn *fn, void *ctx, struct err *err) MUST_CHECK;
void image_done(struct image *image);

static inline void auto_image_release(struct image *slot)
{
	image_done(slot);
}
#define auto_image AUTO(image)
