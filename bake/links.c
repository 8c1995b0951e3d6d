/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/links_priv.h"

#include <stdint.h>

/* The file's slot, or the free one where it belongs. */
static struct link *links_slot(struct links *links, dev_t dev, ino_t ino)
{
	uint64_t hash = ((uint64_t)ino ^ (uint64_t)dev << 40) * 0x9e3779b97f4a7c15U;
	size_t at = (size_t)(hash >> 32);

	for (;; at++) {
		struct link *slot = &links->slots[at & (links->cap - 1)];

		if (slot->path == 0 || (slot->dev == dev && slot->ino == ino))
			return slot;
	}
}

static void links_grow(struct links *links)
{
	struct links grown = {.cap = links->cap ? 2 * links->cap : 64};

	grown.slots = calloc(grown.cap, sizeof(*grown.slots));
	if (!grown.slots)
		abort();
	for (size_t i = 0; i < links->cap; i++) {
		if (links->slots[i].path)
			*links_slot(&grown, links->slots[i].dev, links->slots[i].ino) =
				links->slots[i];
	}
	free(links->slots);
	links->slots = grown.slots;
	links->cap = grown.cap;
}

int links_meet(struct links *links, const struct stat *st, struct str path, const char **out,
	       struct err *err)
{
	struct link *slot;

	if (st->st_nlink < 2)
		return 0;
	if (2 * links->count >= links->cap)
		links_grow(links);
	slot = links_slot(links, st->st_dev, st->st_ino);
	if (slot->path) {
		*out = links->paths.ptr + slot->path - 1;
		return 1;
	}
	if (links->count == LINKS_MAX)
		return err_set(err, ERR_LIMIT, "more than %zu files with several names", LINKS_MAX);
	links->paths.max = LINKS_PATHS_MAX;
	*slot = (struct link){st->st_dev, st->st_ino, links->paths.len + 1};
	links->count++;
	if (buf_add(&links->paths, path, err) < 0 ||
	    buf_add(&links->paths, (struct str){"", 1}, err) < 0)
		return err_ctx(err, "names of hard links");
	return 0;
}

void links_done(struct links *links)
{
	free(links->slots);
	buf_done(&links->paths);
	*links = (struct links){0};
}
