/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proof.h - which tar a blob inflates to, once somebody has inflated it.
 *
 * A blob inflates to one tar for ever, so such a record stays right whatever
 * else is lost. It says which tree belongs to a blob: without it a hostile
 * config could claim one layer's tree for another layer's blob. So whoever goes
 * from a config's diff id to anything of the store asks here first. A tree is
 * known by its tar's sha256; where a config names the tar by a sha512, the
 * record has that, too.
 */
#pragma once

#include "layers/digest.h"
#include "layers/meta.h"

/* 1 and the diff id by this algorithm, 0 nobody has looked, -1. */
int proof_find(struct meta *meta, const struct digest *blob, enum digest_algorithm algorithm,
	       struct digest *out, struct err *err) MUST_CHECK;

/* Whether the tar is the one that a config claims; ERR_CORRUPT when it is another. */
int proof_compare(const struct digest *tar, const struct digest *claimed, struct err *err)
	MUST_CHECK;

/*
 * Whether the blob, by its sha256, is known to inflate to the tar that a config
 * claims: 1 it is, and *out the tar's sha256; 0 nobody has looked; -1 with
 * ERR_CORRUPT when it inflates to another.
 */
int proof_check(struct meta *meta, const struct digest *blob, const struct digest *claimed,
		struct digest *out, struct err *err) MUST_CHECK;

/* The sha256 comes first; another is put beside it. */
int proof_put(struct meta *meta, const struct digest *blob, const struct digest *diff_id,
	      struct err *err) MUST_CHECK;

/* Every record, with the sha256, until fn returns non-zero, which is returned. */
typedef int proof_each_fn(void *ctx, const struct digest *blob, const struct digest *diff_id,
			  struct err *err);
int proof_each(struct meta *meta, proof_each_fn *fn, void *ctx, struct err *err) MUST_CHECK;

/* It was wrong. 1 removed, 0 was not there, -1. */
int proof_remove(struct meta *meta, const struct digest *blob, struct err *err) MUST_CHECK;

/* Forget those of blobs that are gone. */
int proof_sweep(struct store *store, struct err *err) MUST_CHECK;
