/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin_priv.h - where an image is pulled from: a registry, a layout or an
 * archive.
 *
 * Threads: resolve and document belong to one thread; blob may be called from
 * LANES threads at once, each with a lane (a connection) of its own.
 */
#pragma once

#include "layers/base/cancel.h"
#include "layers/base/sink.h"
#include "registry/lanes_priv.h"
#include "registry/manifest.h"

struct store;
struct pull_spec; /* pull.h */
struct tar_index; /* tar_index_priv.h */

struct origin {
	/* The digest that the reference stands for now. */
	int (*resolve)(struct origin *origin, struct digest *out, struct err *err);

	/* A manifest or index, whole, its bytes verified. */
	int (*document)(struct origin *origin, const struct digest *digest, struct buf *out,
			struct err *err);

	/* A blob's bytes, as many as its descriptor says; the sink verifies them. */
	int (*blob)(struct origin *origin, size_t lane, const struct descriptor *blob,
		    struct sink *out, struct err *err);

	/*
	 * Each manifest there that is about this one. NULL for places that have
	 * no such list.
	 */
	int (*referrers)(struct origin *origin, const struct digest *subject,
			 int (*fn)(void *ctx, const struct digest *digest, struct err *err),
			 void *ctx, struct err *err);

	void (*close)(struct origin *origin);

	/* Hears what it has to say beside that, from any thread. Set by who opened it; or NULL. */
	void (*warn)(void *ctx, struct str text);
	void *warn_ctx;

	/*
	 * Owned. Once resolved: the canonical references that the image has at
	 * its origin, or NULL.
	 */
	json_t *names;
};

/* Add a text to the image's names if it is a registry's reference. */
void origin_add_name(struct origin *origin, struct str text);

/*
 * What the spec's reference names; borrows the spec. `stop` is a second cancel,
 * the store is where archives are staged (NULL where none is to be read).
 */
int origin_open(const struct pull_spec *spec, struct store *store, const struct cancel *stop,
		struct origin **out, struct err *err) MUST_CHECK;

/* Of each kind. */
int origin_registry_open(const struct pull_spec *spec, const struct cancel *stop,
			 struct origin **out, struct err *err) MUST_CHECK;
int origin_layout_open(const struct pull_spec *spec, const struct cancel *stop, struct origin **out,
		       struct err *err) MUST_CHECK;

/* Take the tar. */
void origin_archive_open(const struct pull_spec *spec, struct tar_index *tar, struct origin **out);
void origin_docker_open(const struct pull_spec *spec, struct tar_index *tar, struct origin **out);

static inline void origin_close(struct origin *origin)
{
	if (origin)
		origin->close(origin);
}
DEFINE_AUTO(origin, struct origin *, origin_close);
