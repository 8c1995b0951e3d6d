/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lookup.h - the image that a user names: a digest, the beginning of one, or a
 * reference that has a tag here.
 */
#pragma once

#include "api/cli.h"
#include "layers/meta.h"
#include "registry/manifest.h"

/* Whether text may be the beginning of a digest, and the hex in it. */
bool lookup_hex(struct str text, struct str *out);

/* Manifest and config of an image, read and parsed. */
struct lookup {
	struct digest digest;
	struct digest target;     /* the index that it was chosen from, or itself */
	struct buf name;          /* owned; canonical, where it was named by a reference */
	struct buf manifest_text; /* owned */
	struct buf config_text;   /* owned */
	struct manifest manifest;
	struct image_config config;
};

#define LOOKUP_INIT                                               \
	((struct lookup){.name = BUF_INIT(REFERENCE_TEXT_MAX),    \
			 .manifest_text = BUF_INIT(MANIFEST_MAX), \
			 .config_text = BUF_INIT(IMAGE_CONFIG_MAX)})

/*
 * The image whose digest is text, or begins so: 1, 0 none, -1; ERR_INVALID where
 * it fits several.
 */
int lookup_digest(struct meta *meta, struct str text, struct digest *out, struct err *err)
	MUST_CHECK;

int lookup_read(struct store *store, const struct digest *digest, struct lookup *out,
		struct err *err) MUST_CHECK;
void lookup_done(struct lookup *lookup);

/* Bytes of layers, config and manifest. */
uint64_t lookup_size(const struct lookup *lookup);

#define LOOKUP_OPTION_PLATFORM                                                                  \
	{                                                                                       \
		"platform", "OS/ARCH",                                                          \
			"of several images that of this platform; the host's by default", false \
	}

/*
 * The image of the command's first argument, for the platform that it asks for
 * (else the host's, or the only one that is here). The store is opened, and the
 * caller's to close. ERR_NOT_FOUND says what to do; ERR_INVALID for the beginning
 * of a digest that fits several.
 */
int lookup_named(const struct cli *cli, struct store **store, struct lookup *out, struct err *err)
	MUST_CHECK;

/*
 * The same, where an image for several platforms may be meant as a whole: the
 * digest of its index, if no platform is asked for and every image of it is
 * here; else of the one image.
 */
int lookup_whole(const struct cli *cli, struct store **store, struct digest *out, struct err *err)
	MUST_CHECK;

static inline void auto_lookup_release(struct lookup *slot)
{
	lookup_done(slot);
}
#define auto_lookup AUTO(lookup)
