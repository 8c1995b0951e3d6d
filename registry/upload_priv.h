/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upload_priv.h - blobs and documents of the store into a remote repository.
 *
 * A blob is sent whole by one PUT, straight from the store. An upload that
 * breaks is continued where the registry says that it stopped, and sent anew
 * where it does not say. Chunks are for blobs that do not go whole: the
 * registry refuses them (413), or a try breaks and it has kept nothing.
 *
 * Format: OCI distribution-spec 1.1, "Push".
 */
#pragma once

#include "layers/digest.h"
#include "layers/store.h"
#include "registry/remote_priv.h"

#define UPLOAD_CHUNK ((uint64_t)16 * 1024 * 1024)
#define UPLOAD_CHUNK_MAX ((uint64_t)1 << 30) /* a larger OCI-Chunk-Min-Length is not believed */

/* A try that sent so much starts the count of failures anew. */
#define UPLOAD_PROGRESS_BYTES ((uint64_t)1024 * 1024)

typedef void upload_progress_fn(void *ctx, uint64_t done);

struct upload_spec {
	struct store *store;
	struct digest digest;
	uint64_t size;
	struct str session;           /* that upload_mount() left; or empty */
	upload_progress_fn *progress; /* or NULL */
	void *ctx;
};

/* 1 the repository has that blob; 0 it has not, or does not say; -1. */
int upload_is_held(struct remote *remote, struct http *http, const struct digest *digest,
		   struct err *err) MUST_CHECK;

/*
 * Ask for a blob of another repository ("library/debian") of the same registry.
 * 1 it was mounted; 0 it has to be sent, whatever the reason, and *out_session is
 * where, if the registry said that; -1 for ERR_CANCELLED.
 */
int upload_mount(struct remote *remote, struct http *http, const struct digest *digest,
		 struct str from, struct buf *out_session, struct err *err) MUST_CHECK;

int upload_blob(struct remote *remote, struct http *http, const struct upload_spec *spec,
		struct err *err) MUST_CHECK;

/*
 * A manifest or index under a tag or its digest (with a query, perhaps); the
 * registry has to take it as it is. *out is what it answered.
 */
int upload_document(struct remote *remote, struct http *http, const char *name,
		    struct str media_type, struct str text, struct http_reply *out, struct err *err)
	MUST_CHECK;
