/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/v2_recall.h"

#include "layers/base/lock.h"
#include "registry/grammar.h"

#include <stdio.h>
#include <stdlib.h>

/* NAME@REFERENCE: no name has an @ */
#define V2_RECALL_KEY_MAX (GRAMMAR_NAME_MAX + 1 + DIGEST_TEXT_MAX)

struct v2_recall_key {
	char text[V2_RECALL_KEY_MAX];
};

struct v2_recall_place {
	struct lock lock;
	/* guarded by lock: */
	struct v2_recall_key key;
	uint64_t generation; /* 0 for nothing */
	struct repository_item item;
};

struct v2_recall {
	struct v2_recall_place places[V2_RECALL_MAX];
};

struct v2_recall *v2_recall_new(void)
{
	struct v2_recall *recall = calloc(1, sizeof(*recall));

	if (!recall)
		abort();
	for (size_t i = 0; i < V2_RECALL_MAX; i++)
		recall->places[i].lock = (struct lock)LOCK_INIT;
	return recall;
}

void v2_recall_free(struct v2_recall *recall)
{
	free(recall);
}

static struct v2_recall_place *v2_recall_place(struct v2_recall *recall, const struct v2_path *path,
					       struct v2_recall_key *out)
{
	(void)snprintf(out->text, sizeof(out->text), STR_FMT "@" STR_FMT, STR_ARG(path->repository),
		       STR_ARG(path->reference));
	return &recall->places[http_topic(str_of(out->text)) % V2_RECALL_MAX];
}

bool v2_recall_find(struct v2_recall *recall, const struct v2_path *path, uint64_t generation,
		    struct repository_item *out)
{
	struct v2_recall_key key;
	struct v2_recall_place *place = v2_recall_place(recall, path, &key);
	bool hit;

	lock_take(&place->lock);
	hit = place->generation == generation && strcmp(place->key.text, key.text) == 0;
	if (hit)
		*out = place->item;
	lock_drop(&place->lock);
	return hit;
}

void v2_recall_put(struct v2_recall *recall, const struct v2_path *path, uint64_t generation,
		   const struct repository_item *item)
{
	struct v2_recall_key key;
	struct v2_recall_place *place = v2_recall_place(recall, path, &key);

	lock_take(&place->lock);
	place->key = key;
	place->generation = generation;
	place->item = *item;
	lock_drop(&place->lock);
}
