/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/digest_set.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/random.h>

#define DIGEST_SET_FIRST ((size_t)64)

/* All zero is an empty one; no bytes are known that have such a sha256. */
struct digest_slot {
	uint64_t words[4];
};

static const struct digest_slot digest_slot_empty;

static uint64_t digest_set_mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static size_t digest_set_hash(const struct digest_set *set, const struct digest_slot *slot)
{
	uint64_t hash = set->key[0];

	for (size_t i = 0; i < 4; i++)
		hash = digest_set_mix(hash ^ slot->words[i], set->key[1]);
	return hash & (set->cap - 1);
}

static bool digest_slot_equal(const struct digest_slot *a, const struct digest_slot *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* The slot that holds it, or the empty one that would. */
static struct digest_slot *digest_set_at(const struct digest_set *set,
					 const struct digest_slot *slot)
{
	size_t at = digest_set_hash(set, slot);

	while (!digest_slot_equal(&set->slots[at], &digest_slot_empty) &&
	       !digest_slot_equal(&set->slots[at], slot))
		at = (at + 1) & (set->cap - 1);
	return &set->slots[at];
}

static void digest_set_choose_key(struct digest_set *set)
{
	if (set->key[1] != 0)
		return;
	if (getrandom(set->key, sizeof(set->key), 0) != (ssize_t)sizeof(set->key))
		abort(); /* as if out of memory: without it there is no bound */
	set->key[1] |= 1;
}

static void digest_set_grow(struct digest_set *set)
{
	struct digest_set old = *set;

	digest_set_choose_key(set);
	set->cap = old.cap ? 2 * old.cap : DIGEST_SET_FIRST;
	set->slots = calloc(set->cap, sizeof(*set->slots));
	if (!set->slots)
		abort();
	for (size_t i = 0; i < old.cap; i++) {
		if (!digest_slot_equal(&old.slots[i], &digest_slot_empty))
			*digest_set_at(set, &old.slots[i]) = old.slots[i];
	}
	free(old.slots);
}

static void digest_slot_make(const struct digest *digest, struct digest_slot *out)
{
	assert(digest->algorithm == DIGEST_SHA256);
	memcpy(out->words, digest->bytes, sizeof(out->words));
}

int digest_set_add(struct digest_set *set, const struct digest *digest, struct err *err)
{
	struct digest_slot wanted;
	struct digest_slot *slot;

	digest_slot_make(digest, &wanted);
	if (2 * set->count >= set->cap)
		digest_set_grow(set);
	slot = digest_set_at(set, &wanted);
	if (digest_slot_equal(slot, &wanted))
		return 0;
	if (set->count == DIGEST_SET_MAX)
		return err_set(err, ERR_LIMIT, "more than %zu digests", DIGEST_SET_MAX);
	*slot = wanted;
	set->count++;
	return 1;
}

bool digest_set_has(const struct digest_set *set, const struct digest *digest)
{
	struct digest_slot wanted;

	if (set->count == 0 || digest->algorithm != DIGEST_SHA256)
		return false;
	digest_slot_make(digest, &wanted);
	return digest_slot_equal(digest_set_at(set, &wanted), &wanted);
}

bool digest_set_next(const struct digest_set *set, size_t *at, struct digest *out)
{
	while (*at < set->cap) {
		const struct digest_slot *slot = &set->slots[(*at)++];

		if (digest_slot_equal(slot, &digest_slot_empty))
			continue;
		*out = (struct digest){.algorithm = DIGEST_SHA256};
		memcpy(out->bytes, slot->words, sizeof(slot->words));
		return true;
	}
	return false;
}

void digest_set_clear(struct digest_set *set)
{
	if (set->count > 0)
		memset(set->slots, 0, set->cap * sizeof(*set->slots));
	set->count = 0;
}

void digest_set_done(struct digest_set *set)
{
	free(set->slots);
	*set = (struct digest_set){0};
}
