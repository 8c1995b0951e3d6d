/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/diff_priv.h"

static void extents_add(struct extents *extents, int64_t offset, int64_t end)
{
	struct extent *last = extents->count ? &extents->items[extents->count - 1] : NULL;

	if (last && last->offset + last->len >= offset)
		last->len = end - last->offset;
	else
		extents->items[extents->count++] = (struct extent){offset, end - offset};
}

/* The data of a file in units of grain; false when there are too many pieces. */
static bool extents_find(struct extents *extents, int fd, int64_t size, int64_t grain)
{
	int64_t end = 0;

	extents->count = 0;
	while (end < size) {
		int64_t start = lseek(fd, end, SEEK_DATA);

		if (start < 0 || start >= size)
			break;
		end = lseek(fd, start, SEEK_HOLE);
		if (extents->count == DIFF_EXTENTS_MAX)
			return false;
		if (end < 0)
			end = size;
		start -= start % grain;
		end += (grain - end % grain) % grain;
		extents_add(extents, start, end < size ? end : size);
	}
	return true;
}

/*
 * Only large holes count, and only in coarse units, so that the same files have
 * the same tar whatever the file system's allocation did.
 */
void diff_extents_read(struct extents *extents, int fd, const struct stat *stat)
{
	int64_t data = 0;

	extents->count = 0;
	if (stat->st_size - (int64_t)stat->st_blocks * 512 < DIFF_SPARSE_MIN)
		return;
	for (int64_t grain = DIFF_SPARSE_GRAIN; !extents_find(extents, fd, stat->st_size, grain);)
		grain *= 4;
	if (extents->count == 0)
		extents->items[extents->count++] = (struct extent){stat->st_size, 0};
	for (size_t i = 0; i < extents->count; i++)
		data += extents->items[i].len;
	if (stat->st_size - data < DIFF_SPARSE_MIN)
		extents->count = 0;
}
