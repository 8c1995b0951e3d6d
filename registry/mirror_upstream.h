/* SPDX-License-Identifier: Apache-2.0 */
/* mirror_upstream.h - a registry that a mirror stands before. */
#pragma once

#include "layers/base/buf.h"

#include <stdint.h>

#define MIRROR_TAG_TTL_MS 60000
#define MIRROR_WHY_MAX ((size_t)200) /* of what is told of its last failure */

struct mirror_upstream;

struct mirror_upstream_spec {
	struct str host;  /* what it is called: "docker.io" */
	struct str place; /* where it is: "registry-1.docker.io", "10.0.0.1:5000/hub" */
	bool plain_http;
	const char *ca_file; /* whose certificates are trusted beside the system's; or NULL */
	int64_t tag_ttl_ms;  /* -1 for MIRROR_TAG_TTL_MS; 0 asks for a tag each time */
	uint64_t max_bytes;  /* of what is kept of it; 0 for any */
};
