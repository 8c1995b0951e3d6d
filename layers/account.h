/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account.h - to which image each stored byte belongs.
 *
 * 	1 account_open()    a snapshot of blobs/
 * 	2 account_image()   each image, numbered from 0
 * 	  account_claim()   what else names blobs: it counts where no image holds it
 * 	3 account_settle()  every chunk is looked at once, however many share it
 *
 * A chunk belongs to one image where only that holds it, else to several; where
 * no image holds it, to the class of whatever else names a blob with it.
 *
 * Threads: an account belongs to the thread that opened it.
 * Memory: 40 bytes for each place of a chunk in a blob, twice while it is
 * sorted, and 36 for each blob of each image.
 */
#pragma once

#include "layers/reach.h"

#define ACCOUNT_IMAGES_MAX DIGEST_SET_MAX    /* an owner is a number below the classes */
#define ACCOUNT_CLAIMS_MAX ((size_t)1 << 26) /* 64 for each of a million images; 2.5 GiB */

enum account_class {
	ACCOUNT_IMAGES, /* of one image, or of several */
	ACCOUNT_STEPS,
	ACCOUNT_LOGS,
	ACCOUNT_CONTEXTS,
	ACCOUNT_OTHER,   /* indexes, layers in another codec, what was pushed without a name */
	ACCOUNT_UNNAMED, /* what a collection would remove */
	ACCOUNT_CLASSES,
};

struct account_image {
	uint64_t bytes;  /* of its blobs, each once */
	uint64_t unique; /* of chunks that no other image holds */
};

struct account_blob {
	struct digest digest;
	uint64_t size;
	uint32_t images; /* that hold it */
	enum account_class class;
};

struct account_totals {
	uint64_t chunks;
	uint64_t chunk_bytes;
	uint64_t blob_bytes;    /* what blobs would take if they shared nothing */
	uint64_t shared_chunks; /* in several places */
	uint64_t shared_bytes;  /* of them, once */
	uint64_t loose_chunks;  /* in no blob: what a write left, or is about to use */
	uint64_t class_bytes[ACCOUNT_CLASSES];
};

struct account;
int account_open(struct store *store, reach_names_fn *names, struct account **out, struct err *err)
	MUST_CHECK;
void account_close(struct account *account);

/* The next image, by its manifest. */
int account_image(struct account *account, const struct digest *manifest, struct err *err)
	MUST_CHECK;

/* A digest that something names; counted if it is a blob. */
int account_claim(struct account *account, enum account_class class, const struct digest *blob,
		  struct err *err) MUST_CHECK;

/* fn (NULL for none) is called for every blob, in the order of their sha256. */
typedef int account_each_fn(void *ctx, const struct account_blob *blob, struct err *err);
int account_settle(struct account *account, account_each_fn *fn, void *ctx,
		   struct account_totals *out, struct err *err) MUST_CHECK;

/* After account_settle(). Borrowed. */
const struct account_image *account_of(const struct account *account, size_t image);

DEFINE_AUTO(account, struct account *, account_close);
