/* SPDX-License-Identifier: Apache-2.0 */
/*
 * docker_archive.h - an image of the store as `docker save` writes one.
 *
 *	manifest.json   one image: config, names, layers
 *	<hex>.json      the config, byte for byte; <hex> is its digest
 *	<hex>.tar       a layer, inflated; <hex> is its diff id
 *
 * That is what docker load reads since 1.10, and podman and skopeo as well.
 * Every layer is compared with its diff id on the way.
 */
#pragma once

#include "layers/base/json.h"
#include "layers/base/sink.h"
#include "layers/digest.h"
#include "layers/store.h"

struct docker_archive_spec {
	struct digest image; /* of a manifest */
	const json_t *names; /* strings: canonical references; may be empty */
};

/*
 * Loads ISA-L for gzip layers: hearth-worker alone calls it. ERR_INVALID for an
 * index; ERR_NOT_FOUND for what the store lacks; ERR_CORRUPT; and the sink's
 * errors.
 */
int docker_archive_write(struct store *store, const struct docker_archive_spec *spec,
			 struct sink *out, struct err *err) MUST_CHECK;
