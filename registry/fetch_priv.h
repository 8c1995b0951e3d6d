/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch_priv.h - manifests and blobs of one repository, over HTTP.
 *
 * What http.c sends once is here done until it is answered: with the proof that
 * auth.c has, through redirects (which carry that proof to no other host), and
 * again after failures that may pass. A blob whose stream breaks is continued
 * where it broke, by a closed range of the registry's own URL.
 *
 * Format: OCI distribution-spec 1.1, "Pull".
 *
 * Threads: one struct fetch serves all of a pull, each thread with a struct
 * http of its own from fetch_connect().
 */
#pragma once

#include "registry/auth_priv.h"
#include "registry/manifest.h"

#define FETCH_REDIRECTS_MAX 10

/* A try that received so much starts the count of failures anew. */
#define FETCH_PROGRESS_BYTES ((uint64_t)1024 * 1024)

struct fetch;

struct fetch_spec {
	struct str host;
	struct str path;
	bool plain_http;
	const char *ca_file;
	struct str user;
	const struct secret *password; /* with user */
	int tries;
	int retry_base_ms; /* 0 for RETRY_BASE_MS */
	int stall_ms;      /* 0 for HTTP_STALL_MS */
	const struct cancel *cancel;
	const struct cancel *cancel_too;
};

/* Borrows what spec points to. Nothing is sent yet. */
int fetch_open(const struct fetch_spec *spec, struct fetch **out, struct err *err) MUST_CHECK;
void fetch_close(struct fetch *fetch);
int fetch_connect(struct fetch *fetch, struct http **out, struct err *err) MUST_CHECK;

/*
 * Ask what a tag (or digest) stands for. 1 and its digest; 0 where the registry
 * does not answer that question, and the manifest has to be got; -1.
 */
int fetch_head(struct fetch *fetch, struct http *http, const char *name, struct digest *out,
	       struct err *err) MUST_CHECK;

/*
 * A manifest or an index, by tag or digest, into out (whose ceiling holds);
 * *out_digest is what its bytes have. ERR_CORRUPT where they are not what was
 * named or what the registry says they are.
 */
int fetch_manifest(struct fetch *fetch, struct http *http, const char *name, struct buf *out,
		   struct digest *out_digest, struct err *err) MUST_CHECK;

/*
 * Exactly a blob's size in bytes into a sink, which judges their digest.
 * ERR_CORRUPT for another size.
 */
int fetch_blob(struct fetch *fetch, struct http *http, const struct descriptor *blob,
	       struct sink *out, struct err *err) MUST_CHECK;

DEFINE_AUTO(fetch, struct fetch *, fetch_close);
