/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tagging.h - a tag for a document of any kind that a repository of ours holds.
 *
 * Tags (tag.h) are of images: a manifest is one of its config's platform, an
 * index one of each of its entries' whose manifest is here. What is neither (an
 * artifact, an index of nothing) gets TAGGING_NO_PLATFORM, for which nobody
 * asks, so that it has its name and is no base.
 */
#pragma once

#include "registry/repository.h"
#include "registry/tag.h"

#define TAGGING_PLATFORMS_MAX ((size_t)100)
#define TAGGING_NO_PLATFORM "unknown"

/* What is tagged, and the images that are in it. */
struct tagging {
	struct tag *at; /* owned */
	size_t count;
};

/* Whether a tag's document is no image that could run. */
bool tagging_is_opaque(const struct tag *tag);

/*
 * Look at a document; `called` as in a tag. Blobs are read, so it is done
 * before the transaction. An index's images are those that the repository holds
 * as manifests; where repository is "", those that the store does.
 */
int tagging_make(struct store *store, struct str repository, const struct repository_item *item,
		 const struct outline *outline, struct tagging *out, struct err *err) MUST_CHECK;
void tagging_done(struct tagging *tagging);

/* The tag stands for this from now on, and for nothing else. */
int tagging_put(struct meta *meta, struct str repository, struct str tag,
		const struct tagging *tagging, struct err *err) MUST_CHECK;

static inline void auto_tagging_release(struct tagging *slot)
{
	tagging_done(slot);
}
#define auto_tagging AUTO(tagging)
