/* SPDX-License-Identifier: Apache-2.0 */
/* diff_links.c - files with several names, by inode: an open hash table. */
#include "layers/diff_priv.h"

#define LINKS_FIRST_CAP ((size_t)64)

/* Inode numbers run in sequence, so they are spread by a multiplication. */
static struct diff_link *diff_links_slot(const struct diff_links *links, dev_t dev, ino_t ino)
{
	size_t at = (size_t)((ino ^ dev) * 0x9e3779b97f4a7c15u >> 32) & (links->cap - 1);

	while (links->slots[at].path &&
	       (links->slots[at].ino != ino || links->slots[at].dev != dev))
		at = (at + 1) & (links->cap - 1);
	return &links->slots[at];
}

static void diff_links_grow(struct diff_links *links)
{
	struct diff_links grown = {.cap = links->cap ? 2 * links->cap : LINKS_FIRST_CAP};

	grown.slots = calloc(grown.cap, sizeof(*grown.slots));
	if (!grown.slots)
		abort();
	for (size_t i = 0; i < links->cap; i++) {
		const struct diff_link *slot = &links->slots[i];

		if (slot->path)
			*diff_links_slot(&grown, slot->dev, slot->ino) = *slot;
	}
	free(links->slots);
	links->slots = grown.slots;
	links->cap = grown.cap;
}

int diff_links_find(struct diff_links *links, const struct stat *stat, struct str path,
		    const char **out, struct err *err)
{
	struct diff_link *slot;
	size_t at = links->paths.len;

	if (2 * (links->count + 1) > links->cap)
		diff_links_grow(links);
	slot = diff_links_slot(links, stat->st_dev, stat->st_ino);
	if (slot->path) {
		*out = links->paths.ptr + slot->path - 1;
		return 0;
	}
	if (links->paths.max == 0)
		links->paths = BUF_INIT(DIFF_LINKS_MAX);
	if (buf_add(&links->paths, path, err) < 0 ||
	    buf_add(&links->paths, (struct str){"", 1}, err) < 0)
		return err_ctx(err, "too many files with several names");
	*slot = (struct diff_link){stat->st_dev, stat->st_ino, at + 1, false};
	links->count++;
	*out = NULL;
	return 0;
}

bool diff_links_mark_below(struct diff_links *links, const struct stat *stat)
{
	struct diff_link *slot = diff_links_slot(links, stat->st_dev, stat->st_ino);
	bool first = !slot->below;

	slot->below = true;
	return first;
}

void diff_links_done(struct diff_links *links)
{
	free(links->slots);
	buf_done(&links->paths);
	*links = (struct diff_links){0};
}
