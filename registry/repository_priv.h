/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repository_priv.h - table `repositories`, for the files that own it. '!' sorts
 * before all that a name may have, so repositories lie in the order of their names.
 *
 *	NAME!b!DIGEST           a blob      {"v": 1, "blob": "sha256:..", "sizeBytes",
 *	NAME!m!DIGEST           a manifest   "source", "at", "mediaType", "subject"}
 *	NAME!r!SUBJECT!DIGEST   a referrer  {"v": 1, "subject", "descriptor": {..}};
 *	                                    SUBJECT is the hex of the sha256 of its text
 */
#pragma once

#include "registry/repository.h"

#define REPOSITORY_TABLE "repositories"
#define REPOSITORY_LETTERS "bm" /* by enum repository_kind */

struct repository_key {
	char text[META_KEY_MAX + 1];
};

/* NAME!LETTER!REST. ERR_INVALID where the name can be none. */
int repository_key(struct str repository, char letter, const char *rest, struct repository_key *out,
		   struct err *err) MUST_CHECK;

/* The key of a referrer; or, where digest is NULL, the prefix of all of a subject's. */
int repository_referrer_key(struct str repository, const struct digest *subject,
			    const struct digest *digest, struct repository_key *out,
			    struct err *err) MUST_CHECK;

/* What a record says; ERR_CORRUPT. */
int repository_read(struct str repository, enum repository_kind kind, const struct digest *digest,
		    const json_t *value, struct repository_item *out, struct err *err) MUST_CHECK;

/* What its record would say. */
void repository_read_receipt(const struct receipt *receipt, struct repository_item *out);

/* 1, 0, -1. */
int repository_has_record(struct meta *meta, struct str repository,
			  const struct repository_item *item, struct err *err) MUST_CHECK;
