/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_image.h - a small image in a layout: files a layer, nothing pulled.
 */
#pragma once

#include "layers/store.h"
#include "registry/manifest.h"

#define SAMPLE_LAYERS 4
#define SAMPLE_BIG ((size_t)3 * 1024 * 1024)

/* What is wrong with it, or odd. */
enum sample_fault {
	SAMPLE_FINE,
	SAMPLE_TWICE,       /* the last layer is the first once more */
	SAMPLE_FEW_IDS,     /* the config has one diff id less */
	SAMPLE_WRONG_ID,    /* the last diff id is another */
	SAMPLE_SWAPPED,     /* the first two diff ids are each other's */
	SAMPLE_FOR_ANOTHER, /* platform linux/s390x */
	SAMPLE_SHA512,      /* config and layers are named by it, */
	SAMPLE_SHA512_IDS,  /* and the tars in the config; */
	SAMPLE_SHA512_ID,   /* but the last one is another */
};

struct sample_image {
	struct digest manifest;
	struct digest diff_ids[SAMPLE_LAYERS]; /* sha256, as in trees */
	struct digest layers[SAMPLE_LAYERS];   /* of the layout; a registry's are compressed */
	struct digest config;
};

/* Make it in a scratch store and write it as the layout dir, named tag. */
void sample_image_write(struct store *scratch, const char *dir, const char *tag,
			enum sample_fault fault, struct sample_image *out);
