/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/twin_priv.h"

#include "layers/base/array.h"
#include "layers/base/fd.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define TWIN_BLOCK ((size_t)256 * 1024)

/* By inode, so that other names of a file need no look of their own. */
struct twin_pair {
	ino_t fresh;
	ino_t inode;
};

void twin_init(struct twin *twin, int treefd)
{
	*twin = (struct twin){.treefd = treefd, .fd = -1, .block = malloc(TWIN_BLOCK)};
	if (!twin->block)
		abort();
}

void twin_done(struct twin *twin)
{
	auto_close_release(&twin->fd);
	free(twin->pairs);
	free(twin->block);
	*twin = (struct twin){.fd = -1};
}

static void twin_drop(struct twin *twin)
{
	auto_close_release(&twin->fd);
	twin->fd = -1;
}

static void twin_differ(struct twin *twin)
{
	twin->differs = true;
	twin_drop(twin);
}

void twin_open(struct twin *twin, const char *path, int freshfd)
{
	struct err ignored;
	struct stat st;
	struct stat fresh;

	if (twin->differs)
		return;
	twin->at = 0;
	twin->fd = fd_open_in_root(twin->treefd, path,
				   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0, &ignored);
	if (twin->fd < 0 || fstat(twin->fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    fstat(freshfd, &fresh) < 0) {
		twin_differ(twin);
		return;
	}
	twin->pairs = array_grow(twin->pairs, twin->count, sizeof(*twin->pairs));
	twin->pairs[twin->count++] = (struct twin_pair){fresh.st_ino, st.st_ino};
}

/* A block of the tree at twin->at; NULL it is shorter, or cannot be read. */
static const char *twin_read(struct twin *twin, size_t len)
{
	struct err ignored;

	if (fd_pread_all(twin->fd, twin->block, len, twin->at, &ignored) != (ssize_t)len) {
		twin_differ(twin);
		return NULL;
	}
	twin->at += (off_t)len;
	twin->bytes += len;
	return twin->block;
}

static bool twin_is_zero(const char *bytes, size_t len)
{
	return len == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0);
}

/* Zeros up to an offset, of which the tree's own holes need not be read. */
static void twin_skip(struct twin *twin, off_t to)
{
	while (twin->fd >= 0 && twin->at < to) {
		off_t data = lseek(twin->fd, twin->at, SEEK_DATA);
		size_t len;

		if ((data < 0 && errno == ENXIO) || data >= to) {
			twin->at = to;
			return;
		}
		if (data > twin->at)
			twin->at = data;
		len = to - twin->at < (off_t)TWIN_BLOCK ? (size_t)(to - twin->at) : TWIN_BLOCK;
		if (twin_read(twin, len) && !twin_is_zero(twin->block, len))
			twin_differ(twin);
	}
}

void twin_take(struct twin *twin, struct str bytes, off_t offset)
{
	twin_skip(twin, offset);
	while (twin->fd >= 0 && bytes.len > 0) {
		size_t len = bytes.len < TWIN_BLOCK ? bytes.len : TWIN_BLOCK;

		if (twin_read(twin, len) && memcmp(twin->block, bytes.ptr, len) != 0)
			twin_differ(twin);
		bytes.ptr += len;
		bytes.len -= len;
	}
}

void twin_close(struct twin *twin, off_t size)
{
	twin_skip(twin, size);
	twin_drop(twin);
}

static int twin_compare(const void *a, const void *b)
{
	const struct twin_pair *left = a;
	const struct twin_pair *right = b;

	return (left->fresh > right->fresh) - (left->fresh < right->fresh);
}

void twin_sort(struct twin *twin)
{
	if (twin->count > 0)
		qsort(twin->pairs, twin->count, sizeof(*twin->pairs), twin_compare);
}

bool twin_has(const struct twin *twin, ino_t fresh, ino_t inode)
{
	const struct twin_pair wanted = {.fresh = fresh};
	const struct twin_pair *pair = twin->count > 0 ? bsearch(&wanted, twin->pairs, twin->count,
								 sizeof(wanted), twin_compare)
						       : NULL;

	return pair && pair->inode == inode;
}
