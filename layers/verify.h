/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.h - whether blobs/ holds the bytes that its names promise.
 *
 * Every blob is hashed, and every chunk that is in no whole one, on all cores;
 * counts, lists and entries are compared in one snapshot. No snapshot is held
 * for longer than a page of a list, so it runs beside writers and collections:
 * what goes away meanwhile is no finding.
 *
 * Memory: 40 bytes for each place of a chunk in a blob, twice while it is
 * sorted, 80 for each blob, and a digest_set of all chunks.
 */
#pragma once

#include "layers/digest_set.h"
#include "layers/store.h"

#define VERIFY_WORKERS_MAX ((size_t)8)
#define VERIFY_PROGRESS_MS 100

/* In the caller's thread; may raise the cancel. */
typedef void verify_progress_fn(void *ctx, uint64_t done, uint64_t total);

struct verify_options {
	const struct cancel *cancel;
	verify_progress_fn *progress; /* or NULL */
	void *ctx;
};

struct verify_findings {
	struct digest_set chunks; /* that hold other bytes */
	struct digest_set
		blobs;         /* that are not whole: such a chunk is in them, or one is missing */
	uint64_t wrong_counts; /* of the uses of chunks, and lists without a blob */

	uint64_t chunk_count; /* that were hashed */
	uint64_t chunk_bytes;
	uint64_t blob_count;
	int64_t ms;
};

int verify_read(struct store *store, const struct verify_options *options,
		struct verify_findings *out, struct err *err) MUST_CHECK;
void verify_done(struct verify_findings *findings);

/* With everybody excluded (collect.h): leave in *findings what is still wrong. */
int verify_again(struct store *store, struct verify_findings *findings, struct err *err) MUST_CHECK;

/*
 * Then, when no record names such a blob any more: remove what was found, and
 * correct the counts. What was removed can be pulled or made again.
 */
int verify_mend(struct store *store, const struct verify_findings *findings, struct err *err)
	MUST_CHECK;

static inline void auto_verify_findings_release(struct verify_findings *slot)
{
	verify_done(slot);
}
#define auto_verify_findings AUTO(verify_findings)
