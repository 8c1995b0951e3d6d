/* SPDX-License-Identifier: Apache-2.0 */
/*
 * closure.h - the digests that a manifest or an index names, whatever kind it
 * is.
 *
 * manifest.h reads images that a bake can stand on. This reads every document
 * that is handed from one place to another as it is: indexes, artifacts, images
 * of other systems, with layers that are not distributed. Neither media types
 * nor blobs are checked.
 *
 * Formats: OCI image-spec 1.1 and Docker's, as in manifest.h.
 * Ownership: a closure owns its document and is freed whole.
 */
#pragma once

#include "registry/manifest.h"

#define CLOSURE_ITEMS_MAX (MANIFEST_INDEX_MAX + 1)

enum closure_kind {
	CLOSURE_BLOB,     /* a config or a layer */
	CLOSURE_FOREIGN,  /* a layer that only its maker may distribute: named, and not copied */
	CLOSURE_DOCUMENT, /* a manifest or an index */
};

struct closure_item {
	enum closure_kind kind;
	struct descriptor what;
};

struct closure {
	json_t *document; /* owned */
	struct str media_type;
	struct closure_item *items; /* owned; in the document's order */
	size_t count;
};

/* ERR_CORRUPT names what is wrong; ERR_UNSUPPORTED (schema 1, an unknown algorithm); ERR_LIMIT. */
int closure_parse(struct str text, struct closure *out, struct err *err) MUST_CHECK;
void closure_done(struct closure *closure);

static inline void auto_closure_release(struct closure *slot)
{
	closure_done(slot);
}
#define auto_closure AUTO(closure)
