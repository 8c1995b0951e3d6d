/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool.c - the file is a head, which is written once, and a ring behind it.
 *
 *	byte n below max / 2            at n
 *	byte n from there on            at max / 2 + (n - max / 2) % (max - max / 2)
 */
#include "bake/spool.h"

#include "layers/base/embed.h"
#include "layers/base/fd.h"

#include <inttypes.h>
#include <stdio.h>

static uint64_t spool_head(const struct spool *spool)
{
	return spool->max / 2;
}

static uint64_t spool_ring(const struct spool *spool)
{
	return spool->max - spool_head(spool);
}

/* Where a byte lies, and how many may be read or written there at once. */
static uint64_t spool_place(const struct spool *spool, uint64_t at, uint64_t *out_room)
{
	uint64_t head = spool_head(spool);
	uint64_t place;

	if (at < head) {
		*out_room = head - at;
		return at;
	}
	place = (at - head) % spool_ring(spool);
	*out_room = spool_ring(spool) - place;
	return head + place;
}

static int spool_write(struct sink *sink, struct str bytes, struct err *err)
{
	struct spool *spool = container_of(sink, struct spool, sink);

	while (bytes.len > 0) {
		uint64_t room;
		uint64_t place = spool_place(spool, spool->written, &room);
		size_t n = bytes.len < room ? bytes.len : (size_t)room;

		if (fd_pwrite_all(spool->fd, bytes.ptr, n, (off_t)place, err) < 0)
			return -1;
		spool->written += n;
		bytes = str_skip(bytes, n);
	}
	return 0;
}

void spool_init(struct spool *spool, int fd, uint64_t max)
{
	*spool = (struct spool){.sink = {spool_write}, .fd = fd, .max = max};
}

/* The first byte of the end, if some before it are missing; else 0. */
static uint64_t spool_tail(const struct spool *spool)
{
	return spool->written > spool->max ? spool->written - spool_ring(spool) : 0;
}

ssize_t spool_read(const struct spool *spool, uint64_t *at, char *piece, size_t len,
		   uint64_t *out_lost, struct err *err)
{
	uint64_t tail = spool_tail(spool);
	uint64_t place;
	uint64_t room;
	ssize_t n;

	*out_lost = 0;
	if (*at >= spool_head(spool) && *at < tail) {
		*out_lost = tail - *at;
		*at = tail;
	}
	place = spool_place(spool, *at, &room);
	if (room > spool->written - *at)
		room = spool->written - *at;
	if (room == 0)
		return 0;
	n = fd_pread_all(spool->fd, piece, len < room ? len : (size_t)room, (off_t)place, err);
	if (n == 0)
		return err_os(err, EIO, "read the log");
	if (n > 0)
		*at += (uint64_t)n;
	return n < 0 ? err_ctx(err, "read the log") : n;
}

struct str spool_note(uint64_t lost, char text[static SPOOL_NOTE_MAX])
{
	int n = snprintf(text, SPOOL_NOTE_MAX,
			 "\nhearth: %" PRIu64 " bytes of the log are left out here\n", lost);

	return (struct str){text, (size_t)n};
}

int spool_copy(const struct spool *spool, struct sink *out, struct err *err)
{
	char piece[64 * 1024];
	char note[SPOOL_NOTE_MAX];
	uint64_t at = 0;
	uint64_t lost;
	ssize_t n;

	while ((n = spool_read(spool, &at, piece, sizeof(piece), &lost, err)) > 0) {
		if ((lost > 0 && out->write(out, spool_note(lost, note), err) < 0) ||
		    out->write(out, (struct str){piece, (size_t)n}, err) < 0)
			return -1;
	}
	return n < 0 ? -1 : 0;
}

uint64_t spool_kept(const struct spool *spool)
{
	char note[SPOOL_NOTE_MAX];

	if (spool->written <= spool->max)
		return spool->written;
	return spool->max + spool_note(spool->written - spool->max, note).len;
}
