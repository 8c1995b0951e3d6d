/* SPDX-License-Identifier: Apache-2.0 */
/* mounts.c - all mounts of one RUN. */
#include "bake/instruction.h"
#include "layers/base/path.h"

/* Parents first, as components compare; a variable alone is mounted nowhere. */
static bool mount_is_before(const struct mount *a, const struct mount *b)
{
	struct str left = str_of(a->target ? a->target : "");
	struct str right = str_of(b->target ? b->target : "");
	struct str l;
	struct str r;

	while (path_next(&right, &r)) {
		int order;

		if (!path_next(&left, &l))
			return true;
		order = strncmp(l.ptr, r.ptr, l.len < r.len ? l.len : r.len);
		if (order != 0 || l.len != r.len)
			return order < 0 || (order == 0 && l.len < r.len);
	}
	return false;
}

/* Mounts of one target stay in their written order: the last one is seen. */
static void mounts_insert(struct mounts *mounts, const struct mount *mount)
{
	size_t i = mounts->count++;

	for (; i > 0 && mount_is_before(mount, &mounts->at[i - 1]); i--)
		mounts->at[i] = mounts->at[i - 1];
	mounts->at[i] = *mount;
}

int mounts_parse(const struct words *texts, const struct state *state, struct mounts *out,
		 struct err *err)
{
	auto_mounts struct mounts mounts = {0};

	if (texts->count > MOUNTS_MAX)
		return err_set(err, ERR_REFUSED, "more than %d mounts", MOUNTS_MAX);
	mounts.at = calloc(texts->count + 1, sizeof(*mounts.at));
	if (!mounts.at)
		abort();
	for (size_t i = 0; i < texts->count; i++) {
		struct mount mount;

		if (mount_parse(str_of(texts->at[i]), state, &mount, err) < 0)
			return -1;
		mounts_insert(&mounts, &mount);
	}
	*out = mounts;
	mounts = (struct mounts){0};
	return 0;
}

void mounts_done(struct mounts *mounts)
{
	for (size_t i = 0; i < mounts->count; i++)
		mount_done(&mounts->at[i]);
	free(mounts->at);
	*mounts = (struct mounts){0};
}
