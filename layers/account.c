/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account.c - an owner is the number of an image, or a class.
 *
 *	blob   claims, sorted by digest      -> its owner, by merging all of them
 *	chunk  places, sorted by chunk's id  -> its owner, by merging its blobs'
 */
#include "layers/account.h"

#include "layers/base/array.h"
#include "layers/places_priv.h"

#define OWNER_CLASS(class) (UINT32_MAX - (uint32_t)(class))

struct claim {
	uint8_t blob[32];
	uint32_t owner;
};

struct account {
	const struct store_blobs *blobs;
	struct reach *reach;
	MDB_txn *txn;
	struct claim *claims; /* owned */
	size_t claim_count;
	struct places places;
	struct account_image *images; /* owned */
	size_t image_count;
	size_t at; /* the next claim, while blobs are gone through */
};

int account_open(struct store *store, reach_names_fn *names, struct account **out, struct err *err)
{
	AUTO(account) struct account *account = calloc(1, sizeof(*account));

	if (!account)
		abort();
	if (store_blobs(store, &account->blobs, err) < 0 ||
	    reach_open(store, names, &account->reach, err) < 0 ||
	    db_begin(&account->blobs->db, DB_READ, &account->txn, err) < 0)
		return -1;
	*out = steal_ptr(&account);
	return 0;
}

void account_close(struct account *account)
{
	if (!account)
		return;
	mdb_txn_abort(account->txn);
	reach_close(account->reach);
	free(account->claims);
	places_done(&account->places);
	free(account->images);
	free(account);
}

static bool owner_is_image(uint32_t owner)
{
	return owner < OWNER_CLASS(ACCOUNT_CLASSES) || owner == OWNER_CLASS(ACCOUNT_IMAGES);
}

static uint32_t owner_merge(uint32_t a, uint32_t b)
{
	if (a == b)
		return a;
	if (owner_is_image(a) && owner_is_image(b))
		return OWNER_CLASS(ACCOUNT_IMAGES);
	if (owner_is_image(a) || owner_is_image(b))
		return owner_is_image(a) ? a : b;
	return a > b ? a : b; /* the class that comes first */
}

static enum account_class owner_class(uint32_t owner)
{
	return owner_is_image(owner) ? ACCOUNT_IMAGES : (enum account_class)(UINT32_MAX - owner);
}

static int account_add_claim(struct account *account, uint32_t owner, const struct digest *blob,
			     struct err *err)
{
	struct claim *claim;

	if (array_make_room(&account->claims, sizeof(*claim), account->claim_count,
			    ACCOUNT_CLAIMS_MAX, "blobs of all images", err) < 0)
		return -1;
	claim = &account->claims[account->claim_count++];
	memcpy(claim->blob, blob->bytes, sizeof(claim->blob));
	claim->owner = owner;
	return 0;
}

int account_claim(struct account *account, enum account_class class, const struct digest *blob,
		  struct err *err)
{
	return account_add_claim(account, OWNER_CLASS(class), blob, err);
}

static int account_reached(void *ctx, const struct reach_item *item, struct err *err)
{
	struct account *account = ctx;

	if (item->kind == REACH_OTHER)
		return 0;
	account->images[account->image_count - 1].bytes += item->size;
	return account_add_claim(account, (uint32_t)account->image_count - 1, &item->digest, err);
}

int account_image(struct account *account, const struct digest *manifest, struct err *err)
{
	if (array_make_room(&account->images, sizeof(*account->images), account->image_count,
			    ACCOUNT_IMAGES_MAX, "images", err) < 0)
		return -1;
	account->images[account->image_count++] = (struct account_image){0};
	reach_forget(account->reach);
	return reach_from(account->reach, manifest, account_reached, account, err);
}

static int claim_compare(const void *a, const void *b)
{
	return memcmp(((const struct claim *)a)->blob, ((const struct claim *)b)->blob,
		      sizeof(((const struct claim *)a)->blob));
}

/* All claims of the blob; blobs come in the order that the claims have. */
static uint32_t account_find_owner(struct account *account, const struct digest *blob,
				   uint32_t *out_images)
{
	uint32_t owner = OWNER_CLASS(ACCOUNT_UNNAMED);
	int order = -1;

	*out_images = 0;
	for (; account->at < account->claim_count; account->at++) {
		const struct claim *claim = &account->claims[account->at];

		order = memcmp(claim->blob, blob->bytes, sizeof(claim->blob));
		if (order > 0)
			break;
		if (order < 0)
			continue;
		*out_images += owner_is_image(claim->owner);
		owner = owner_merge(owner, claim->owner);
	}
	return owner;
}

/* What all blobs are walked with. */
struct account_walk {
	struct account *account;
	account_each_fn *fn;
	void *ctx;
	struct account_totals *totals;
};

static int account_visit(void *ctx, const struct blob_entry *entry, struct err *err)
{
	const struct account_walk *walk = ctx;
	struct account *account = walk->account;
	struct account_blob blob = {.digest = entry->digest, .size = entry->size};
	uint32_t owner = account_find_owner(account, &entry->digest, &blob.images);

	blob.class = owner_class(owner);
	walk->totals->blob_bytes += entry->size;
	if (places_add_blob(&account->places, account->blobs, account->txn, entry, owner, err) < 0)
		return -1;
	return walk->fn ? walk->fn(walk->ctx, &blob, err) : 0;
}

static void account_add_chunk(struct account *account, const struct place *places, size_t count,
			      struct account_totals *totals)
{
	uint32_t owner = places->owner;

	for (size_t i = 1; i < count; i++)
		owner = owner_merge(owner, places[i].owner);
	totals->chunks++;
	totals->chunk_bytes += places->size;
	totals->shared_chunks += count > 1;
	totals->shared_bytes += count > 1 ? places->size : 0;
	totals->class_bytes[owner_class(owner)] += places->size;
	if (owner < account->image_count)
		account->images[owner].unique += places->size;
}

static int account_add_chunks(struct account *account, struct account_totals *totals,
			      struct err *err)
{
	MDB_stat stat;
	int rc = mdb_stat(account->txn, account->blobs->chunks, &stat);

	if (rc != 0)
		return db_fail(&account->blobs->db, rc, err);
	places_sort(&account->places);
	for (size_t i = 0, same; i < account->places.count; i += same) {
		same = places_same(&account->places, i);
		account_add_chunk(account, &account->places.at[i], same, totals);
	}
	if (stat.ms_entries > totals->chunks)
		totals->loose_chunks = stat.ms_entries - totals->chunks;
	return 0;
}

int account_settle(struct account *account, account_each_fn *fn, void *ctx,
		   struct account_totals *out, struct err *err)
{
	struct account_totals totals = {0};
	struct account_walk walk = {account, fn, ctx, &totals};
	int result;

	if (account->claim_count > 0)
		qsort(account->claims, account->claim_count, sizeof(*account->claims),
		      claim_compare);
	account->at = 0;
	result = blob_entry_each(account->blobs, account->txn, account_visit, &walk, err);
	if (result != 0)
		return result;
	if (account_add_chunks(account, &totals, err) < 0)
		return -1;
	*out = totals;
	return 0;
}

const struct account_image *account_of(const struct account *account, size_t image)
{
	return &account->images[image];
}
