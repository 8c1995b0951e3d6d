/* SPDX-License-Identifier: Apache-2.0 */
/* stock.h - documents and blobs in a store, named by either algorithm. */
#pragma once

#include "layers/blob.h"
#include "registry/repository.h"
#include "tests/layers/store_fixture.h"

struct stock {
	struct digest digest; /* as documents name it */
	struct digest blob;   /* sha256 */
	uint64_t size;
	char name[DIGEST_TEXT_MAX]; /* digest's text */
};

/* The digest of some bytes by an algorithm. */
static inline struct digest stock_digest(struct str bytes, enum digest_algorithm algorithm)
{
	AUTO(hasher) struct hasher hasher = {0};
	struct digest digest;

	hasher_init_as(&hasher, algorithm);
	hasher_add(&hasher, bytes);
	hasher_final(&hasher, &digest);
	return digest;
}

/* Bytes that the store has not. */
static inline struct stock stock_absent(const char *text, enum digest_algorithm algorithm)
{
	struct stock stock = {.digest = stock_digest(str_of(text), algorithm),
			      .blob = stock_digest(str_of(text), DIGEST_SHA256),
			      .size = strlen(text)};

	(void)digest_format(&stock.digest, stock.name);
	return stock;
}

static inline struct stock stock_put(struct store *store, const char *text,
				     enum digest_algorithm algorithm)
{
	struct stock stock = stock_absent(text, algorithm);
	AUTO(blob_writer) struct blob_writer *writer = NULL;
	struct blob_info info;
	struct err err = {0};

	check_ok(blob_writer_open(store, &writer, &err), &err);
	check_ok(blob_writer_add(writer, str_of(text), &err), &err);
	check_ok(blob_writer_commit(writer, &stock.digest, &info, &err), &err);
	return stock;
}

/* A descriptor's text, in a ring of a few. */
static inline const char *stock_descriptor(const struct stock *stock, const char *type)
{
	static char ring[8][512];
	static size_t at;
	char *out = ring[at++ % 8];

	(void)snprintf(out, sizeof(ring[0]),
		       "{\"mediaType\":\"%s\",\"digest\":\"%s\",\"size\":%llu}", type, stock->name,
		       (unsigned long long)stock->size);
	return out;
}

static inline struct repository_item
stock_item(const struct stock *stock, enum repository_kind kind, enum repository_source source)
{
	return (struct repository_item){.kind = kind,
					.source = source,
					.digest = stock->digest,
					.blob = stock->blob,
					.size = stock->size,
					.at_ms = 1700000000123,
					.media_type = "application/x-test"};
}
