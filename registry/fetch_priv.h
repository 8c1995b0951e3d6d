/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch_priv.h - manifests and blobs of a remote repository.
 *
 * A blob whose stream breaks is continued where it broke, by a closed range of
 * the registry's own URL.
 *
 * Format: OCI distribution-spec 1.1, "Pull".
 */
#pragma once

#include "registry/manifest.h"
#include "registry/remote_priv.h"

/* A try that received so much starts the count of failures anew. */
#define FETCH_PROGRESS_BYTES ((uint64_t)1024 * 1024)

/* All of them, always: registries answer 404 for a type that is not listed. */
#define FETCH_ACCEPT                                                                              \
	MEDIA_OCI_MANIFEST ", " MEDIA_OCI_INDEX ", " MEDIA_DOCKER_MANIFEST ", " MEDIA_DOCKER_LIST \
			   ", application/vnd.docker.distribution.manifest.v1+prettyjws, "        \
			   "application/vnd.docker.distribution.manifest.v1+json, */*"

/*
 * Ask what a tag (or digest) stands for. 1 and its digest; 0 where the registry
 * does not answer that question, and the manifest has to be got; -1.
 */
int fetch_head(struct remote *remote, struct http *http, const char *name, struct digest *out,
	       struct err *err) MUST_CHECK;

/*
 * A manifest or an index, by tag or digest, into out (whose ceiling holds);
 * *out_digest is the digest of its bytes. ERR_CORRUPT where that is not the
 * digest that was named, or that the registry states.
 */
int fetch_manifest(struct remote *remote, struct http *http, const char *name, struct buf *out,
		   struct digest *out_digest, struct err *err) MUST_CHECK;

/*
 * A blob's bytes into a sink, which checks their digest. ERR_CORRUPT for
 * another size than the descriptor's.
 */
int fetch_blob(struct remote *remote, struct http *http, const struct descriptor *blob,
	       struct sink *out, struct err *err) MUST_CHECK;

/* The type of an answer, without parameters: "; charset=utf-8" says nothing about JSON. */
struct str fetch_media_type(const struct http_reply *response);

/* Whether a registry's headers agree with the manifest whose digest this is. ERR_CORRUPT. */
int fetch_check_manifest(const struct http_reply *response, struct str text,
			 const struct digest *digest, struct err *err) MUST_CHECK;
