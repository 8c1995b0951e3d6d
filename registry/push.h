/* SPDX-License-Identifier: Apache-2.0 */
/*
 * push.h - an image of the store into a registry.
 *
 * Blobs first, LANES at a time, then the manifest that names them; of an index
 * its manifests, then the index; further tags; then what is about the image. What
 * the registry has is not sent: if the name already stands for this very digest
 * one request is all, and a blob that we have from another repository of the same
 * registry is mounted from there. Layers that are not distributed are named and
 * not sent. What a manifest is about is noted for registries that do not
 * (referrers_remote_priv.h).
 *
 * Transport, credentials and tries are those of pull.h. A blob is sent from the
 * store as it is read; an upload that breaks is continued where the registry
 * says it stopped.
 *
 * Errors: ERR_NOT_FOUND (something of the image is not in the store, or there is
 * no such repository), ERR_UNAUTHORIZED, ERR_DENIED, ERR_BUSY, ERR_REMOTE,
 * ERR_TIMEOUT, ERR_CANCELLED, ERR_CORRUPT (the store's bytes); ERR_INVALID for a
 * reference that is no registry's, or names another digest.
 */
#pragma once

#include "layers/base/cancel.h"
#include "layers/base/secret.h"
#include "layers/store.h"
#include "registry/reference.h"

#define PUSH_TRIES 5
#define PUSH_TAGS_MAX ((size_t)32) /* of one push */

enum push_event_kind {
	PUSH_BLOB,         /* a blob's progress: done of size bytes */
	PUSH_BLOB_HELD,    /* the repository has it already */
	PUSH_BLOB_MOUNTED, /* another repository had it */
	PUSH_BLOB_DONE,
	PUSH_DOCUMENT,      /* a manifest or index was sent */
	PUSH_DOCUMENT_HELD, /* and so has all that it names */
	PUSH_WARNING,       /* text is a sentence; nothing else is set */
};

struct push_event {
	enum push_event_kind kind;
	struct digest digest;
	uint64_t done; /* bytes */
	uint64_t size; /* bytes */
	struct str text;
};

typedef void push_event_fn(void *ctx, const struct push_event *event);

struct push_spec {
	const struct reference *reference; /* where to, and as what */
	struct digest manifest;            /* of a manifest or an index in the store */
	const struct str *tags;            /* further ones of the repository */
	size_t tag_count;
	const struct digest *referrers; /* of the store, and about the image: pushed, too */
	size_t referrer_count;
	struct str from;     /* a repository of that registry which has the image's blobs; or "" */
	bool plain_http;     /* loopback needs no asking */
	const char *ca_file; /* NULL for the system's */
	struct str user;     /* credentials for this host, or empty */
	const struct secret *password;
	push_event_fn *event; /* called from several threads, one at a time; may be NULL */
	void *event_ctx;
	const struct cancel *cancel;
};

/*
 * Borrows the spec. Loads libcurl: hearth-puller alone calls it. *out is the
 * digest that the name stands for now.
 */
int push_image(struct store *store, const struct push_spec *spec, struct digest *out,
	       struct err *err) MUST_CHECK;
