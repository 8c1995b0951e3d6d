/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_archive.h - an image of the store as a tar of an OCI layout.
 *
 * oci-layout and index.json come first, so that a stream can be read as it
 * comes; then the blobs, straight from the store, each compared with its digest
 * on the way. Equal images make equal archives.
 */
#pragma once

#include "layers/base/sink.h"
#include "layers/digest.h"
#include "layers/store.h"

struct oci_archive_spec {
	struct digest image; /* of a manifest, or an index with all its platforms */
	struct str tag;      /* its org.opencontainers.image.ref.name; "" for none */
	struct str name;     /* its full name, for containerd and hearth import; "" for none */
};

/* ERR_NOT_FOUND for what the store lacks; ERR_CORRUPT; and the sink's errors. */
int oci_archive_write(struct store *store, const struct oci_archive_spec *spec, struct sink *out,
		      struct err *err) MUST_CHECK;
