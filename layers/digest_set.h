/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digest_set.h - many digests, and whether one is among them.
 *
 * Digests may come from a hostile peer: the hash has a key of the set's own, so
 * nobody can choose digests that collide.
 *
 * Memory: at most 128 bytes for each, at least 32.
 */
#pragma once

#include "layers/digest.h"

#define DIGEST_SET_MAX ((size_t)1 << 24) /* all that one store names: 1.5 GiB at the worst */

struct digest_set {
	struct digest_slot *slots; /* owned */
	size_t count;
	size_t cap; /* 0, or a power of two */
	uint64_t key[2];
};

/* A sha256. 1 it was new, 0 it was there, -1 with ERR_LIMIT. */
int digest_set_add(struct digest_set *set, const struct digest *digest, struct err *err) MUST_CHECK;
bool digest_set_has(const struct digest_set *set, const struct digest *digest);

/* One after the other, from *at = 0 on. False at the end. */
bool digest_set_next(const struct digest_set *set, size_t *at, struct digest *out);

/* Empty again; the memory stays. */
void digest_set_clear(struct digest_set *set);
void digest_set_done(struct digest_set *set);

static inline void auto_digest_set_release(struct digest_set *slot)
{
	digest_set_done(slot);
}
#define auto_digest_set AUTO(digest_set)
