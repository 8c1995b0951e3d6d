/* SPDX-License-Identifier: Apache-2.0 */
/*
 * receipt.h - for whom a blob was put, until a record says so.
 *
 * Who puts a blob for somebody and needs both to be durable would pay for two
 * commits, the blob's in blobs/ and his record's in meta/. A receipt is written
 * with the blob (blob_writer_receipt()). It is as good as a record: it is found by
 * its name, and to a collector it is a root. Whoever keeps the records writes them
 * with what he commits anyway, or many at once, and takes the receipts back.
 *
 * Invariant: the blob of a receipt is in the store.
 *
 * Names are any bytes but NUL, and not empty. One name and digest have one receipt,
 * the last.
 */
#pragma once

#include "layers/digest.h"
#include "layers/store.h"

#define RECEIPT_NAME_MAX ((size_t)255)

struct receipt {
	char name[RECEIPT_NAME_MAX + 1];
	struct digest digest; /* that the blob was put by: a sha512 perhaps */
	struct digest blob;   /* the same bytes, by sha256 */
	uint64_t size;        /* bytes */
	int64_t at_ms;
};

/* 1, 0, -1. */
int receipt_find(struct store *store, struct str name, const struct digest *digest,
		 struct receipt *out, struct err *err) MUST_CHECK;

/* Whether there is one of this name. 1, 0, -1. */
int receipt_exists(struct store *store, struct str name, struct err *err) MUST_CHECK;

/* The next name behind this one, in place; "" is before all. 1, 0, -1. */
int receipt_next_name(struct store *store, char name[static RECEIPT_NAME_MAX + 1], struct err *err)
	MUST_CHECK;

/*
 * Up to max of them behind `after`, or from the first where it is NULL, by name and
 * digest. How many, 0 at the end; -1.
 */
int receipt_read(struct store *store, const struct receipt *after, struct receipt *out, int max,
		 struct err *err) MUST_CHECK;

/* Remove those that are still what was read; durable when this returns 0. */
int receipt_take_back(struct store *store, const struct receipt *receipts, int count,
		      struct err *err) MUST_CHECK;

/* Remove one, whatever it says; durable. 1 removed, 0 was not there, -1. */
int receipt_drop(struct store *store, struct str name, const struct digest *digest, struct err *err)
	MUST_CHECK;
