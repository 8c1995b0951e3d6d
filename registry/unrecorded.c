/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/unrecorded.h"

#include "layers/blob.h"
#include "layers/receipt.h"
#include "registry/repository.h"

#include <stdlib.h>

/*
 * Who deletes the blob does so in a transaction before this one, or finds the record. A blob
 * may be gone where a program collected that knows no receipts.
 */
static int unrecorded_record(struct meta *meta, const struct receipt *receipt, struct err *err)
{
	struct store *store = meta_store(meta);
	struct blob_info blob;
	struct receipt now;
	int found = receipt_find(store, str_of(receipt->name), &receipt->digest, &now, err);

	if (found == 1)
		found = blob_find(store, &now.blob, &blob, err);
	return found == 1 ? repository_put_receipt(meta, &now, err) : found;
}

static int unrecorded_settle_batch(struct store *store, const struct receipt *batch, int count,
				   struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;

	if (meta_begin(store, META_WRITE, &meta, err) < 0)
		return -1;
	for (int i = 0; i < count; i++) {
		if (unrecorded_record(meta, &batch[i], err) < 0)
			return -1;
	}
	if (meta_commit(steal_ptr(&meta), err) < 0)
		return -1;
	return receipt_take_back(store, batch, count, err);
}

int unrecorded_settle(struct store *store, const struct cancel *cancel, struct err *err)
{
	auto_free struct receipt *batch = calloc(UNRECORDED_BATCH, sizeof(*batch));
	struct receipt last;
	int count;

	if (!batch)
		abort();
	count = receipt_read(store, NULL, batch, UNRECORDED_BATCH, err);
	while (count > 0) {
		last = batch[count - 1];
		if (cancel_check(cancel, err) < 0 ||
		    unrecorded_settle_batch(store, batch, count, err) < 0)
			return -1;
		count = receipt_read(store, &last, batch, UNRECORDED_BATCH, err);
	}
	return count;
}
