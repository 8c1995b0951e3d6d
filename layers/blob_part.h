/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blob_part.h - a blob's bytes from any place on, copied once, to where the
 * caller wants them.
 *
 * A part is a place in a blob that moves on as it is read; it is embedded, owns
 * nothing, and has no memory beyond itself. Each call has a read transaction of
 * its own, so between two of them a peer may be waited for as long as it takes.
 *
 * Threads: a part belongs to one thread at a time.
 */
#pragma once

#include "layers/blob.h"

struct blob_part {
	struct store *store; /* borrowed */
	struct digest blob;  /* its sha256 */
	uint64_t size;       /* bytes of the whole blob */
	uint64_t chunks;
	uint64_t chunk; /* the number of one, and how many bytes are before it */
	uint64_t before;
};

/* 1, 0 there is no such blob, -1. */
int blob_part_open(struct store *store, const struct digest *digest, struct blob_part *out,
		   struct err *err) MUST_CHECK;

enum blob_part_where {
	BLOB_PART_ANYWHERE, /* reads the disk where it has to */
	BLOB_PART_IN_MEMORY /* stops before what would be read from it */
};

/*
 * How many of the max bytes from `at` on were copied: all, but at the blob's end
 * and before what is not where it was asked for; 0 for none. ERR_CORRUPT for a
 * chunk that is missing or of another size.
 */
ssize_t blob_part_read(struct blob_part *part, uint64_t at, char *out, size_t max,
		       enum blob_part_where where, struct err *err) MUST_CHECK;
