/* SPDX-License-Identifier: Apache-2.0 */
/* listing_priv.h - a listing (listing.h), written name by name as a walk meets them. */
#pragma once

#include "bake/context.h"
#include "bake/source_priv.h"
#include "layers/base/buf.h"

struct listing_draft {
	struct buf *list;   /* borrowed; NULL: none is wanted */
	const char *chmod;  /* of the COPY; borrowed, or NULL */
	const char *source; /* the path of the one that is walked */
	bool owners;        /* an image's count */
	bool whole;
};

void listing_draft_init(struct listing_draft *draft, const struct context_sources *sources);

/* The next source begins. */
void listing_source(struct listing_draft *draft, const struct source_spec *source);

/* An entry of it; a file is known, and its attributes are read. */
int listing_add(const struct listing_draft *draft, const struct source_entry *entry,
		struct err *err) MUST_CHECK;
