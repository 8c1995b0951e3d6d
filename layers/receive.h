/* SPDX-License-Identifier: Apache-2.0 */
/*
 * receive.h - a layer that arrives from outside: into the store and into a
 * tree, verified, in one pass.
 *
 *	receive_write() -> ring -> sha256, 1 MiB chunks -> blob
 *	              \-> ring -> inflate, sha256 (diff id) -> unpack -> tree
 *
 * Nothing is visible before receive_finish() has compared size, digest and
 * diff id: ERR_CORRUPT otherwise, and neither blob nor tree exists.
 *
 * Threads: three inside, two where there is a tree already; one outside calls
 * write, finish and close.
 * Memory: three rings of RECEIVE_RING_BYTES, a chunk, and the stream's window
 * (layer.h); blob.h's batches are the process's. Three at once: 35 MiB.
 */
#pragma once

#include "layers/blob.h"
#include "layers/tree.h"
#include "layers/unpack.h"

#define RECEIVE_RING_BYTES ((size_t)1024 * 1024) /* three rings a layer, three layers at once */

struct receive_spec {
	struct digest blob;    /* what the manifest names */
	uint64_t size;         /* bytes, by the manifest's descriptor */
	struct digest diff_id; /* by the image's config; the tree has the sha256's name */
	struct unpack_limits limits;
	const struct cancel *cancel;     /* NULL for none */
	const struct cancel *cancel_too; /* of the work that this is a part of; NULL for none */
};

struct receive;
int receive_open(struct store *store, const struct receive_spec *spec, struct receive **out,
		 struct err *err) MUST_CHECK;
int receive_write(struct receive *receive, struct str bytes, struct err *err) MUST_CHECK;
int receive_finish(struct receive *receive, struct err *err) MUST_CHECK;

/* What a layer that was received is like, beside being whole. */
struct receive_report {
	uint64_t size;     /* bytes, of the blob */
	uint64_t tar_size; /* bytes, of what it inflates to */
	uint64_t behind;   /* bytes of the blob that are behind its compressed stream */
};

/* After a finish that went well. */
void receive_report(const struct receive *receive, struct receive_report *out);

/* Whether it inflates to so much more than its size that somebody should know. */
#define RECEIVE_SWOLLEN_RATIO 100
#define RECEIVE_SWOLLEN_BYTES ((uint64_t)1 << 30) /* and more than that */
bool receive_is_swollen(const struct receive_report *report);

/* Before finish: stop the threads, remove what was staged. */
void receive_close(struct receive *receive);

/*
 * Make the tree of a layer whose blob is in the store already (it was lost, or
 * never made). Where there is a tree the blob is read all the same, to prove
 * that the two belong together.
 */
int receive_unpack_stored(struct store *store, const struct receive_spec *spec, struct err *err)
	MUST_CHECK;

/*
 * See to it that a stored layer, by its blob's sha256, has its tree: that one is
 * there, and is known to be this blob's (proof.h), or it is made. ERR_CORRUPT
 * where the blob inflates to another tar.
 */
int receive_have_tree(struct store *store, const struct receive_spec *spec, struct err *err)
	MUST_CHECK;

DEFINE_AUTO(receive, struct receive *, receive_close);
