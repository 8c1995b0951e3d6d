/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip_tag.h - the gzip variant of an image of ours, for clients that know no
 * zstd (Docker before 23): TAG-gzip, beside TAG.
 *
 * It is made when it is first asked for, from what TAG stands for, which its
 * record names (tag.h, `made_of`). It goes when TAG goes or stands for something
 * else, in the same transaction, and is made again when it is asked for again.
 * Conversion is a function of the image, so its digest is the same each time; of
 * an image that is gzip already it is the image's own. A TAG-gzip that somebody
 * pushed is a tag like all others.
 */
#pragma once

#include "registry/tag.h"

/* TAG of a TAG-gzip. False for any other, and for the variant of a variant. */
bool gzip_tag_split(struct str tag, struct str *out_base);

/* What TAG of a repository stands for, which a variant is made of. 1, 0, -1. */
int gzip_tag_find(struct meta *meta, struct str repository, struct str base, struct tag *out,
		  struct err *err) MUST_CHECK;

/*
 * Name a variant that was made of `target`, and is held by a lease. 1; 0 TAG
 * stands for something else by now, or TAG-gzip is somebody's; -1, ERR_NOT_FOUND
 * where it was made of more than the repository has.
 */
int gzip_tag_put(struct store *store, struct str repository, struct str base,
		 const struct digest *target, const struct digest *variant, struct err *err)
	MUST_CHECK;
