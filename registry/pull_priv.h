/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pull_priv.h - one pull, as its parts see it.
 */
#pragma once

#include "layers/base/lock.h"
#include "layers/lease.h"
#include "registry/origin_priv.h"
#include "registry/pull.h"

#define PULL_DEPTH_MAX 4 /* of indexes in indexes */

struct pull {
	struct store *store;
	struct lease *lease; /* names each thing before it is looked for */
	const struct pull_spec *spec;
	struct platform wanted;
	struct origin *origin;
	struct cancel stop;     /* raised when a layer fails, for the others */
	struct lock event_lock; /* one event at a time */
};

void pull_tell(struct pull *pull, enum pull_event_kind kind, const struct descriptor *blob,
	       uint64_t done);

/* The same of something odd, which is no failure; ctx is the pull. */
void pull_warn(void *ctx, struct str text);

/*
 * Name a thing in the lease by what the store calls it, if it has it. What it
 * lacks is new when it comes, and held for that.
 */
int pull_hold(struct pull *pull, const struct digest *digest, struct err *err) MUST_CHECK;

/* A manifest or index, from the store or its origin, verified. */
int pull_document(struct pull *pull, const struct digest *digest, struct buf *out, struct err *err)
	MUST_CHECK;

/* What the reference stands for now, verified, and the digest that says so. */
int pull_target(struct pull *pull, struct digest *out, struct buf *out_text, struct err *err)
	MUST_CHECK;

/*
 * A text that is known to be wanted, into the store, where it is found by this
 * name. *out is what the store calls it, a sha256.
 */
int pull_store(struct pull *pull, const struct digest *name, const struct buf *text,
	       struct digest *out, struct err *err) MUST_CHECK;

/*
 * Of an index the wanted platform's manifest, into *out_text, which is empty,
 * and its name there. Indexes that lead to it are stored, since it hangs on them.
 */
int pull_choose(struct pull *pull, struct str index, struct digest *out, struct buf *out_text,
		struct err *err) MUST_CHECK;

/* What a bare spec asks for (gather.c). */
int gather_image(struct pull *pull, struct tag *out, struct err *err) MUST_CHECK;

/* Every layer of the manifest into store and tree, LANES at a time. */
int pull_layers(struct pull *pull, const struct manifest *manifest,
		const struct image_config *config, struct err *err) MUST_CHECK;
