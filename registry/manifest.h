/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest.h - the documents that make layers an image, read with care.
 *
 * Formats: OCI image-spec 1.1 (manifest.md, image-index.md) and Docker's
 * distribution manifest v2 schema 2 and manifest list. Schema 1 is refused with
 * a sentence. A layer's media type is kept but not believed: a blob's first
 * bytes tell its format.
 *
 * Ownership: parsed documents own one JSON document each and are freed whole.
 */
#pragma once

#include "layers/codec.h"
#include "registry/image_config.h"
#include "registry/reference.h"

#define MANIFEST_MAX ((size_t)4 * 1024 * 1024) /* the distribution spec asks for 4 MiB */
#define MANIFEST_LAYERS_MAX IMAGE_LAYERS_MAX
#define MANIFEST_INDEX_MAX 1000 /* entries of an index */

#define MEDIA_OCI_MANIFEST "application/vnd.oci.image.manifest.v1+json"
#define MEDIA_OCI_INDEX "application/vnd.oci.image.index.v1+json"
#define MEDIA_OCI_CONFIG "application/vnd.oci.image.config.v1+json"
#define MEDIA_OCI_LAYER_ZSTD "application/vnd.oci.image.layer.v1.tar+zstd"
#define MEDIA_OCI_LAYER_GZIP "application/vnd.oci.image.layer.v1.tar+gzip"
#define MEDIA_OCI_LAYER_TAR "application/vnd.oci.image.layer.v1.tar"
#define MEDIA_DOCKER_MANIFEST "application/vnd.docker.distribution.manifest.v2+json"
#define MEDIA_DOCKER_LIST "application/vnd.docker.distribution.manifest.list.v2+json"
#define MEDIA_DOCKER_LAYER_GZIP "application/vnd.docker.image.rootfs.diff.tar.gzip"

/* The type of a layer that we made. */
const char *manifest_layer_type(enum layer_codec codec);

/* In one word, the format that a layer's media type states: gzip, zstd, tar, or "?". */
const char *manifest_layer_word(struct str media_type);

struct descriptor {
	struct str media_type; /* borrowed from the document */
	struct digest digest;
	uint64_t size; /* bytes */
};

struct manifest {
	json_t *document; /* owned */
	struct str media_type;
	struct descriptor config;
	struct descriptor *layers; /* owned, bottom first */
	size_t layer_count;
};

/*
 * ERR_CORRUPT names what is wrong; ERR_UNSUPPORTED for what is no image of
 * layers (schema 1, an index, an artifact, foreign or encrypted layers, a
 * digest of an unknown algorithm); ERR_LIMIT above the ceilings.
 */
int manifest_parse(struct str text, struct manifest *out, struct err *err) MUST_CHECK;
void manifest_done(struct manifest *manifest);

/*
 * Whether the text is an index (or a manifest list). A document that could be
 * read as both is ERR_CORRUPT: two readers would see two images.
 */
int manifest_is_index(struct str text, bool *out, struct err *err) MUST_CHECK;

/*
 * The entry for a platform: the one of the newest variant that matches, and of
 * equals the first. ERR_NOT_FOUND lists the platforms that there are. Of the
 * descriptor the type is not told.
 */
int manifest_choose(struct str index_text, const struct platform *wanted, struct descriptor *out,
		    struct err *err) MUST_CHECK;

/* The same of an entry that is an index itself, by its place among them: 1, 0 there is none, -1. */
int manifest_index_in(struct str index_text, size_t at, struct descriptor *out, struct err *err)
	MUST_CHECK;

/*
 * The platforms of an index, as strings that the caller owns; what names none,
 * such as attestations, is left out. Of a manifest there are none.
 */
int manifest_platforms(struct str text, json_t **out, struct err *err) MUST_CHECK;

static inline void auto_manifest_release(struct manifest *slot)
{
	manifest_done(slot);
}
#define auto_manifest AUTO(manifest)
