/* SPDX-License-Identifier: Apache-2.0 */
/* diff_extents.c - where a sparse file has data. */
#include "layers/base/fd.h"
#include "layers/diff_priv.h"

struct extents_file {
	int fd;
	int64_t size;
	int64_t grain;
	char *block; /* or NULL */
};

/* False when there are too many. */
static bool extents_add(struct extents *extents, int64_t offset, int64_t end)
{
	struct extent *last = extents->count ? &extents->items[extents->count - 1] : NULL;

	if (last && last->offset + last->len >= offset) {
		last->len = end - last->offset;
		return true;
	}
	if (extents->count == DIFF_EXTENTS_MAX)
		return false;
	extents->items[extents->count++] = (struct extent){offset, end - offset};
	return true;
}

/* What cannot be read is data: whoever reads it next will say why. */
static bool extents_is_zero(const struct extents_file *file, int64_t at, int64_t end)
{
	while (at < end) {
		size_t want = end - at < (int64_t)DIFF_BLOCK ? (size_t)(end - at) : DIFF_BLOCK;
		struct err ignored;
		ssize_t n = fd_pread_all(file->fd, file->block, want, at, &ignored);

		if (n <= 0 || !str_is_zero((struct str){file->block, (size_t)n}))
			return false;
		at += n;
	}
	return true;
}

/* What the file system calls data, from one grain's start to another's or the end. */
static bool extents_take(struct extents *extents, const struct extents_file *file, int64_t start,
			 int64_t end)
{
	if (!file->block)
		return extents_add(extents, start, end);
	for (; start < end; start += file->grain) {
		int64_t stop = end - start < file->grain ? end : start + file->grain;

		if (!extents_is_zero(file, start, stop) && !extents_add(extents, start, stop))
			return false;
	}
	return true;
}

static bool extents_find(struct extents *extents, const struct extents_file *file)
{
	int64_t end = 0;

	extents->count = 0;
	while (end < file->size) {
		int64_t start = lseek(file->fd, end, SEEK_DATA);

		if (start < 0 || start >= file->size)
			break;
		end = lseek(file->fd, start, SEEK_HOLE);
		if (end < 0)
			end = file->size;
		start -= start % file->grain;
		end += (file->grain - end % file->grain) % file->grain;
		if (!extents_take(extents, file, start, end < file->size ? end : file->size))
			return false;
	}
	return true;
}

/*
 * Only large holes count, and only in coarse units, so that the same files have
 * the same tar whatever the file system's allocation did; for most, at least:
 * see diff_spec.
 */
void diff_extents_read(struct extents *extents, int fd, const struct stat *stat, char *block)
{
	struct extents_file file = {fd, stat->st_size, DIFF_SPARSE_GRAIN, NULL};
	int64_t room = block ? 0 : (int64_t)stat->st_blocks * 512;
	int64_t data = 0;

	file.block = block;
	extents->count = 0;
	if (file.size - room < DIFF_SPARSE_MIN)
		return;
	while (!extents_find(extents, &file))
		file.grain *= 4;
	if (extents->count == 0)
		extents->items[extents->count++] = (struct extent){file.size, 0};
	for (size_t i = 0; i < extents->count; i++)
		data += extents->items[i].len;
	if (file.size - data < DIFF_SPARSE_MIN)
		extents->count = 0;
}
