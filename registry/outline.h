/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outline.h - what a manifest or an index says to a registry that holds it:
 * what it is, what it names, and which other document it is about.
 *
 * manifest.h reads images that a bake can stand on. A registry takes every
 * document of the format: artifacts with any config, indexes in indexes, layers
 * that are not distributed, sha512 throughout; and it reads what strangers send.
 *
 * Formats: OCI image-spec 1.1 and Docker's schema 2, as in manifest.h.
 * Ownership: an outline owns its document and is freed whole; what it lends
 * lives as long.
 * Limits: MANIFEST_MAX bytes, OUTLINE_VALUES_MAX values of JSON in them (so that
 * 4 MiB of brackets are not 200 MiB of memory), OUTLINE_ITEMS_MAX named things.
 */
#pragma once

#include "registry/manifest.h"

#define OUTLINE_VALUES_MAX ((size_t)100000)
#define OUTLINE_ITEMS_MAX ((size_t)10000)

enum outline_kind {
	OUTLINE_BLOB,     /* a config or a layer */
	OUTLINE_FOREIGN,  /* a layer that only its maker may distribute */
	OUTLINE_DOCUMENT, /* a manifest or an index */
};

struct outline_item {
	enum outline_kind kind;
	struct descriptor what;
};

struct outline {
	json_t *document; /* owned */
	bool index;
	struct str media_type;    /* as it says itself, or "" */
	struct str artifact_type; /* the same; of a manifest without one, its config's type */
	bool has_subject;
	struct descriptor subject;
	json_t *annotations;        /* borrowed; NULL for none */
	struct outline_item *items; /* owned; in the document's order, the config first */
	size_t count;
};

/*
 * ERR_INVALID names what is wrong; ERR_UNSUPPORTED for schema 1 and digests of
 * an algorithm that nobody here knows; ERR_LIMIT above the ceilings.
 */
int outline_parse(struct str text, struct outline *out, struct err *err) MUST_CHECK;
void outline_done(struct outline *outline);

/* The type that a document without one has by its shape. A literal. */
struct str outline_type(const struct outline *outline);

static inline void auto_outline_release(struct outline *slot)
{
	outline_done(slot);
}
#define auto_outline AUTO(outline)
