/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.h - OCI image layouts on disk, as a source and as an output.
 *
 * Format: OCI image-spec 1.1, image-layout.md. Blobs of a foreign layout are
 * verified like those of a registry; links in it are not followed out of it.
 */
#pragma once

#include "layers/base/cancel.h"
#include "registry/tag.h"

/*
 * The manifest or index that a layout's tag names, read from index.json. A tag
 * of "" is the only entry, or else "latest". It needs no library but the JSON
 * parser. ERR_NOT_FOUND and ERR_INVALID (more than one) list the tags.
 */
int layout_resolve(struct str dir, struct str tag, struct digest *out, struct err *err) MUST_CHECK;

/*
 * Write an image of the store (a manifest, or an index with all its platforms)
 * as a layout: blobs/sha256/.., oci-layout, and an entry in index.json named tag
 * (which replaces one of that name; others stay). dir is made if its parent
 * exists. Blocks while another writes there. The layout is complete and synced
 * when this returns 0; a crash leaves index.json as it was, and a failure or a
 * cancel all of it.
 */
int layout_write(struct store *store, const struct digest *manifest, struct str dir, struct str tag,
		 const struct cancel *cancel, struct err *err) MUST_CHECK;
