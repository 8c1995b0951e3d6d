/* SPDX-License-Identifier: Apache-2.0 */
/* tag_priv.h - the records of table `tags`, as tag.c says what is in them. */
#pragma once

#include "registry/tag.h"

#define TAG_TABLE "tags"

/* Call fn for each image of a record; a record of ours that is wrong is ERR_CORRUPT. */
int tag_each_image(const json_t *record, tag_each_fn *fn, void *ctx, struct err *err) MUST_CHECK;

/* Serve target by a name of ours; nothing for any other. */
int tag_hold(struct meta *meta, struct str reference, const struct digest *target, struct err *err)
	MUST_CHECK;
