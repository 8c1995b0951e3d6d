/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v2_manifest.h - manifests and tags of a repository of ours: given, taken and
 * deleted.
 *
 * What is given is what was put, whatever Accept says: another form would have
 * another digest. What is taken names only what its repository holds in the
 * transaction that records it, so that a manifest never leads to an unknown blob.
 */
#pragma once

#include "registry/repository.h"
#include "registry/v2.h"

/* GET, HEAD, PUT, DELETE of .../manifests/REFERENCE. */
void v2_manifest_answer(struct v2_call *call);

/* PUT alone. */
void v2_manifest_put(struct v2_call *call);

/* A header whose value is a digest. */
void v2_manifest_add_digest(struct http_response *response, const char *name,
			    const struct digest *digest);
