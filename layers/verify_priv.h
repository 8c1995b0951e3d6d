/* SPDX-License-Identifier: Apache-2.0 */
/* verify_priv.h - what the files of the check share. */
#pragma once

#include "layers/blob_priv.h"
#include "layers/verify.h"

struct verify_blob {
	struct digest digest;
	uint64_t size;
	bool single; /* it is one chunk, which has the same digest and is hashed there */
};

/* One snapshot of all lists. */
struct verify_survey {
	struct verify_blob *blobs; /* owned */
	size_t blob_count;
	struct digest_set damaged; /* blobs whose entry or list is */
	uint64_t wrong_counts;
	uint64_t bytes; /* to be hashed, in blobs of several chunks and in chunks */
};

int verify_survey_read(const struct store_blobs *blobs, struct verify_survey *out, struct err *err)
	MUST_CHECK;
void verify_survey_done(struct verify_survey *survey);

/* Inside a writing transaction: make counts what the lists say, and remove lists of no blob. */
int verify_survey_mend(const struct store_blobs *blobs, MDB_txn *txn, struct err *err) MUST_CHECK;

/* Whether a chunk's bytes are what its name says. */
bool verify_chunk(const struct digest *id, struct str bytes);

/* One blob, chunk after chunk. 1 it is whole, or gone; 0 it is not, -1. */
int verify_blob(const struct store_blobs *blobs, const struct digest *digest,
		const struct cancel *cancel, struct err *err) MUST_CHECK;

static inline void auto_verify_survey_release(struct verify_survey *slot)
{
	verify_survey_done(slot);
}
#define auto_verify_survey AUTO(verify_survey)
