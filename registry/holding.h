/* SPDX-License-Identifier: Apache-2.0 */
/*
 * holding.h - all that an image leads to, as records of a repository.
 *
 * An image that was baked, pulled or tagged here is served without a copy: its
 * documents and blobs become readable by a repository's name in the transaction
 * that gives it a tag there. What the store has not (other platforms, layers
 * that are not distributed) is left out.
 *
 * An image that somebody pushed gives no right to what it leads to: the store may
 * have that of others. Its manifest was taken with what its repository held; what
 * an index names may have been put as a blob, and nobody asked what that names.
 *
 * Limits: HOLDING_DOCUMENTS_MAX documents of one image.
 */
#pragma once

#include "registry/repository.h"

#define HOLDING_DOCUMENTS_MAX ((size_t)10000)
#define HOLDING_REFERENCE_MAX (sizeof(HOLDING_HOST "/:") + GRAMMAR_NAME_MAX + GRAMMAR_TAG_MAX)
#define HOLDING_HOST "localhost" /* of the names that are ours: localhost/REPOSITORY:TAG */

/* The repository of a canonical reference that is ours. False for any other. */
bool holding_split(struct str reference, struct str *out_repository, struct str *out_tag);

/* The reference of a tag; false where repository or tag are too long. */
bool holding_join(struct str repository, struct str tag, char out[static HOLDING_REFERENCE_MAX]);

/* Put what target leads to, as baked. */
int holding_put(struct meta *meta, struct str repository, const struct digest *target,
		struct err *err) MUST_CHECK;

/* ERR_NOT_FOUND names what the store has of it, and the repository has not. */
int holding_check(struct meta *meta, struct str repository, const struct digest *target,
		  struct err *err) MUST_CHECK;

/* What of it was pushed follows the tags from now on: the user removes the image. */
int holding_release(struct meta *meta, struct str repository, const struct digest *target,
		    struct err *err) MUST_CHECK;
