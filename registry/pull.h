/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pull.h - an image from a registry, a layout or an archive into the store.
 *
 * The manifest of the wanted platform, its config and its layers, layers in
 * parallel, each verified while it streams into blob and tree in one pass
 * (layers/receive.h). What the store holds is not fetched. The tag is written
 * last, when everything that it names is durable.
 *
 * Transport: HTTPS; plain HTTP where the caller asks for it, and to loopback
 * unless a CA file is named or the registry wants TLS. Anonymous, basic and
 * bearer (distribution's token specification). Redirects never carry
 * Authorization to another host, and lead from HTTPS to plain HTTP only for
 * what is asked for by its digest. 408, 429, 5xx and broken connections are
 * retried with backoff (PULL_TRIES), by a closed Range once bytes were received.
 * Who is silent is asked once more at most: the caller waits better than a pull.
 *
 * Errors: ERR_NOT_FOUND (name or tag), ERR_UNAUTHORIZED, ERR_DENIED,
 * ERR_BUSY (429), ERR_REMOTE (it misbehaves), ERR_CORRUPT (bytes are not what their digest
 * says, or a layer climbs out), ERR_UNSUPPORTED (no image of layers, schema 1),
 * ERR_LIMIT (a document, or what a layer inflates to), ERR_TIMEOUT,
 * ERR_CANCELLED, ERR_FULL; ERR_INVALID for scratch.
 */
#pragma once

#include "layers/base/cancel.h"
#include "layers/base/secret.h"
#include "layers/receive.h"
#include "registry/manifest.h"
#include "registry/tag.h"

#define PULL_TRIES 5
#define PULL_MIRROR_TRIES 2 /* then the next place is asked */

/* What happened. */
enum pull_event_kind {
	PULL_RESOLVED,   /* digest is the manifest's */
	PULL_LAYER,      /* a layer's progress: done of size bytes */
	PULL_LAYER_HELD, /* the store has it already */
	PULL_LAYER_DONE,
	PULL_NAMED,    /* it is in the store, by the name in text */
	PULL_REFERRER, /* digest is of what is about the image, or about that */
	PULL_WARNING,  /* text is a sentence; nothing else is set */
};

struct pull_event {
	enum pull_event_kind kind;
	struct digest digest;
	uint64_t done; /* bytes */
	uint64_t size; /* bytes */
	struct str text;
};

typedef void pull_event_fn(void *ctx, const struct pull_event *event);

struct pull_spec {
	const struct reference *reference;
	const struct reference *mirror; /* a registry that is asked in its place, or NULL */
	struct str name;    /* canonical, to be tagged instead of the reference; may be "" */
	bool unnamed;       /* no name at all */
	bool name_as_there; /* use the names that the image has at its origin */
	int streamfd;       /* what the file `-` reads; 0 for none */
	bool bare;          /* blobs alone, for a copy or an export: no trees, and no name */
	bool all_platforms; /* of a bare pull the whole index */
	bool referrers;     /* of a bare pull also what is about the image */
	bool any_archive;   /* find out which kind of archive it is */
	struct platform platform;
	bool plain_http;     /* loopback needs no asking */
	const char *ca_file; /* NULL for the system's */
	struct str user;     /* credentials for this host, or empty */
	const struct secret *password;
	struct unpack_limits limits;
	pull_event_fn *event; /* called from several threads, one at a time; may be NULL */
	void *event_ctx;
	const struct cancel *cancel;
};

/* Borrows the spec. Loads libcurl and libarchive: hearth-puller alone calls it. */
int pull_image(struct store *store, const struct pull_spec *spec, struct tag *out, struct err *err)
	MUST_CHECK;
