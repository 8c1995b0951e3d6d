/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blob_priv.h - a blob's entry and its list of chunks, inside the caller's
 * transaction on blobs/.
 */
#pragma once

#include "layers/blob.h"
#include "layers/chunk_priv.h"

#define BLOB_ADVICE "hearth fsck mends the store" /* for what a person reads of damage */
#define BLOB_PAGE_REFS ((size_t)1024)
#define BLOB_CHUNKS_MAX ((size_t)4 * 1024 * 1024) /* 256 GiB in frames; 160 MiB of list */

/* One chunk in a blob, as the pages table has it. */
struct blob_ref {
	uint8_t id[32];
	uint32_t size;       /* little-endian, like the next */
	uint32_t plain_size; /* of a frame, inflated; 0 for foreign chunks */
};

void blob_ref_make(const struct blob_chunk *chunk, struct blob_ref *out);
void blob_ref_read(const struct blob_ref *ref, struct blob_chunk *out);

struct blob_entry {
	struct digest digest; /* sha256, whatever it was asked by */
	uint64_t size;        /* bytes */
	uint64_t chunks;
	uint32_t stamp; /* of the last time that it was put */
};

/*
 * A stamp is the number of a transaction on blobs/, modulo 2^32: of two, less
 * than 2^31 transactions apart, one knows which came first.
 */
static inline bool blob_stamp_is_after(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0;
}

/* The stamp of the last transaction that was committed. */
int blob_stamp_now(const struct store_blobs *blobs, uint32_t *out, struct err *err) MUST_CHECK;

/* 1, 0 or -1. */
int blob_entry_find(const struct store_blobs *blobs, MDB_txn *txn, const struct digest *digest,
		    struct blob_entry *out, struct err *err) MUST_CHECK;

/* Every blob of the snapshot, in the order of their sha256. Non-zero from fn stops. */
typedef int blob_entry_each_fn(void *ctx, const struct blob_entry *entry, struct err *err);
int blob_entry_each(const struct store_blobs *blobs, MDB_txn *txn, blob_entry_each_fn *fn,
		    void *ctx, struct err *err) MUST_CHECK;

/*
 * Page number page of the list: *out has room for BLOB_PAGE_REFS. ERR_CORRUPT
 * where the page is missing or of another size than the entry says.
 */
int blob_entry_page(const struct store_blobs *blobs, MDB_txn *txn, const struct blob_entry *entry,
		    uint64_t page, struct blob_ref *out, size_t *out_count, struct err *err)
	MUST_CHECK;

/* The same as it lies in the map, unaligned, for as long as txn: struct blob_ref after another. */
int blob_entry_view_page(const struct store_blobs *blobs, MDB_txn *txn,
			 const struct blob_entry *entry, uint64_t page, struct str *out,
			 struct err *err) MUST_CHECK;

/* Every chunk of the list, in order; ERR_CORRUPT as above. Non-zero from fn stops. */
typedef int blob_list_each_fn(void *ctx, const struct blob_chunk *chunk, struct err *err);
int blob_list_each(const struct store_blobs *blobs, MDB_txn *txn, const struct blob_entry *entry,
		   blob_list_each_fn *fn, void *ctx, struct err *err) MUST_CHECK;

/*
 * Write the entry, its pages and all counts; one that exists only gets the
 * transaction's stamp, which keeps it from a collector (lease.h). Where a chunk is
 * gone nothing is written, and blob->err says so: that is no failure of the
 * transaction.
 */
int blob_entry_put(const struct store_blobs *blobs, MDB_txn *txn, struct batch_blob *blob,
		   struct err *err) MUST_CHECK;

/* Remove another name of a blob that is no more; one that leads to a blob stays. */
int blob_alias_drop(const struct store_blobs *blobs, MDB_txn *txn, const struct digest *digest,
		    struct err *err) MUST_CHECK;

/* Remove a blob: all its names, its list, and one from the count of each of its chunks. */
int blob_entry_del(const struct store_blobs *blobs, MDB_txn *txn, const struct blob_entry *entry,
		   struct err *err) MUST_CHECK;

/* The same for a damaged blob: no count is touched. */
int blob_entry_drop(const struct store_blobs *blobs, MDB_txn *txn, const struct digest *digest,
		    struct err *err) MUST_CHECK;

/* Remove its list alone. */
int blob_list_drop(const struct store_blobs *blobs, MDB_txn *txn, const struct digest *digest,
		   struct err *err) MUST_CHECK;
