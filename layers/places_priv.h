/* SPDX-License-Identifier: Apache-2.0 */
/*
 * places_priv.h - where chunks are held: a place is one chunk in one blob's list.
 *
 * Memory: 40 bytes a place, and as much again while they are sorted.
 */
#pragma once

#include "layers/blob_priv.h"

#define PLACES_MAX ((size_t)1 << 26) /* 4 TiB of blobs in frames; 2.5 GiB of memory */

struct place {
	uint8_t id[32]; /* the chunk's */
	uint32_t size;  /* bytes */
	uint32_t owner; /* the caller's own mark */
};

struct places {
	struct place *at; /* owned */
	size_t count;
};

/* Every place of the blob. ERR_CORRUPT, and some of them, where its list is damaged. */
int places_add_blob(struct places *places, const struct store_blobs *blobs, MDB_txn *txn,
		    const struct blob_entry *entry, uint32_t owner, struct err *err) MUST_CHECK;

/* By their chunks. */
void places_sort(struct places *places);

/* Of sorted places: how many are of one chunk from number `at` on; 0 behind the last. */
size_t places_same(const struct places *places, size_t at);

void places_done(struct places *places);

static inline void auto_places_release(struct places *slot)
{
	places_done(slot);
}
#define auto_places AUTO(places)
