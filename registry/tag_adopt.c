/* SPDX-License-Identifier: Apache-2.0 */
/* tag_adopt.c - what has a name of ours, and is not served by it yet. */
#include "registry/tag_priv.h"

#include "registry/holding.h"

#include <stdio.h>

#define TAG_ADOPT_BATCH 64 /* images whose records are put in one transaction */

struct tag_adoption {
	struct meta *meta;
	bool only_look;
	size_t count;                /* images that are not held */
	char last[META_KEY_MAX + 1]; /* the key of the record that was adopted last */
};

static int tag_adopt_one(void *ctx, struct str reference, const struct tag *tag, struct err *err)
{
	struct tag_adoption *adoption = ctx;
	struct repository_item item;
	struct str repository;
	struct str name;
	int found;

	if (!holding_split(reference, &repository, &name))
		return 0;
	found = repository_find(adoption->meta, repository, REPOSITORY_MANIFEST, tag_digest(tag),
				&item, err);
	if (found != 0)
		return found < 0 ? -1 : 0;
	adoption->count++;
	return adoption->only_look ? 0 : tag_hold(adoption->meta, reference, &tag->target, err);
}

static int tag_adopt_record(void *ctx, struct str key, const json_t *value, struct err *err)
{
	struct tag_adoption *adoption = ctx;

	if (!adoption->only_look && adoption->count >= TAG_ADOPT_BATCH)
		return 1;
	(void)snprintf(adoption->last, sizeof(adoption->last), STR_FMT, STR_ARG(key));
	return tag_each_image(value, tag_adopt_one, adoption, err);
}

/* Those behind the last record. 1 there are more, 0, -1. */
static int tag_adopt_some(struct store *store, struct tag_adoption *adoption, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	int more;

	if (meta_begin(store, adoption->only_look ? META_READ : META_WRITE, &meta, err) < 0)
		return -1;
	adoption->meta = meta;
	adoption->count = 0;
	more = meta_each_after(meta, TAG_TABLE, STR(HOLDING_HOST "/"), str_of(adoption->last),
			       tag_adopt_record, adoption, err);
	if (more < 0 || adoption->only_look)
		return more;
	return meta_commit(steal_ptr(&meta), err) < 0 ? -1 : more;
}

int tag_adopt(struct store *store, struct err *err)
{
	struct tag_adoption look = {.only_look = true};
	struct tag_adoption adoption = {.only_look = false};
	int more = tag_adopt_some(store, &look, err);

	if (more < 0 || look.count == 0)
		return more;
	do {
		more = tag_adopt_some(store, &adoption, err);
	} while (more == 1);
	return more;
}
