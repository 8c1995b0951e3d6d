/* SPDX-License-Identifier: Apache-2.0 */
/* verify_mend.c - with everybody excluded: look again at what was found, and mend it. */
#include "layers/verify_priv.h"

/* Keep only what is still damaged: a blob may have been collected, and perhaps put again. */
static int verify_keep_blobs(const struct store_blobs *blobs, struct digest_set *set,
			     struct err *err)
{
	auto_digest_set struct digest_set damaged = {0};
	struct digest digest;
	size_t at = 0;

	while (digest_set_next(set, &at, &digest)) {
		int whole = verify_blob(blobs, &digest, NULL, err);

		if (whole < 0 || (whole == 0 && digest_set_add(&damaged, &digest, err) < 0))
			return -1;
	}
	digest_set_done(set);
	*set = damaged;
	damaged = (struct digest_set){0};
	return 0;
}

static int verify_keep_chunks(const struct store_blobs *blobs, struct digest_set *set,
			      struct err *err)
{
	auto_digest_set struct digest_set damaged = {0};
	AUTO(txn) MDB_txn *txn = NULL;
	struct digest id;
	size_t at = 0;

	if (db_begin(&blobs->db, DB_READ, &txn, err) < 0)
		return -1;
	while (digest_set_next(set, &at, &id)) {
		struct str bytes;
		int found = chunk_find(blobs, txn, &id, &bytes, err);

		if (found < 0 || (found == 1 && !verify_chunk(&id, bytes) &&
				  digest_set_add(&damaged, &id, err) < 0))
			return -1;
	}
	digest_set_done(set);
	*set = damaged;
	damaged = (struct digest_set){0};
	return 0;
}

int verify_again(struct store *store, struct verify_findings *findings, struct err *err)
{
	auto_verify_survey struct verify_survey survey = {0};
	const struct store_blobs *blobs;

	if (store_blobs(store, &blobs, err) < 0 ||
	    verify_keep_blobs(blobs, &findings->blobs, err) < 0 ||
	    verify_keep_chunks(blobs, &findings->chunks, err) < 0 ||
	    (findings->wrong_counts > 0 && verify_survey_read(blobs, &survey, err) < 0))
		return -1;
	findings->wrong_counts = survey.wrong_counts;
	return 0;
}

int verify_mend(struct store *store, const struct verify_findings *findings, struct err *err)
{
	const struct store_blobs *blobs;
	AUTO(txn) MDB_txn *txn = NULL;
	struct digest digest;
	size_t at = 0;

	if (store_blobs(store, &blobs, err) < 0 || db_begin(&blobs->db, DB_WRITE, &txn, err) < 0)
		return -1;
	while (digest_set_next(&findings->chunks, &at, &digest)) {
		if (db_del(&blobs->db, txn, blobs->chunks,
			   (struct str){(const char *)digest.bytes, 32}, err) < 0)
			return -1;
	}
	at = 0;
	while (digest_set_next(&findings->blobs, &at, &digest)) {
		if (blob_entry_drop(blobs, txn, &digest, err) < 0)
			return -1;
	}
	if (verify_survey_mend(blobs, txn, err) < 0)
		return -1;
	return db_commit(&blobs->db, steal_ptr(&txn), err);
}
