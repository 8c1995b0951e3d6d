/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intake.h - a blob is taken in: its bytes are hashed and stored as they come,
 * and in the end a repository holds them.
 *
 * Durability: the blob, and that the repository holds it, are durable when
 * intake_keep() returns 0, by one commit: its receipt (layers/receipt.h) comes
 * with it. Without intake_keep() nothing is kept.
 *
 * Threads: an intake belongs to one at a time. Memory: a chunk (blob.h).
 */
#pragma once

#include "layers/blob.h"
#include "layers/lease.h"

struct intake;

/* For bytes of this digest. */
int intake_open(struct store *store, const struct digest *digest, struct intake **out,
		struct err *err) MUST_CHECK;
void intake_close(struct intake *intake);

int intake_add(struct intake *intake, struct str bytes, struct err *err) MUST_CHECK;

/* Bytes so far. */
uint64_t intake_size(const struct intake *intake);

/* Check that these were all the bytes of the digest; ERR_CORRUPT if not. */
int intake_check(struct intake *intake, struct err *err) MUST_CHECK;

/* Make it a blob that was pushed to this repository. */
int intake_keep(struct intake *intake, struct str repository, struct err *err) MUST_CHECK;

/*
 * Find a blob by its digest alone, which no record that was read need name, so
 * that a collection may be about to take it: the lease names it before it is
 * relied on, and rests. 1, 0, -1.
 */
int intake_find(struct store *store, struct lease *lease, const struct digest *digest,
		struct blob_info *out, struct err *err) MUST_CHECK;

/*
 * Make a blob of the store one of this repository: 1 done, 0 the store does not
 * have it, -1.
 */
int intake_mount(struct store *store, const struct digest *digest, struct str repository,
		 struct err *err) MUST_CHECK;

DEFINE_AUTO(intake, struct intake *, intake_close);
