/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/layers/packing.h"

#include <isa-l/igzip_lib.h>
#include <zstd.h>

#define PACK_SLACK ((size_t)4096)

static void pack_add(struct buf *out, const void *bytes, size_t len)
{
	struct err err;

	if (buf_add(out, (struct str){bytes, len}, &err) < 0)
		abort();
}

void pack_gzip(struct buf *out, struct str plain)
{
	size_t room = plain.len + plain.len / 8 + PACK_SLACK;
	auto_free unsigned char *packed = malloc(room);
	auto_free struct isal_zstream *stream = malloc(sizeof(*stream));

	if (!packed || !stream)
		abort();
	isal_deflate_stateless_init(stream);
	stream->gzip_flag = IGZIP_GZIP;
	stream->end_of_stream = 1;
	stream->next_in = (uint8_t *)(uintptr_t)plain.ptr;
	stream->avail_in = (uint32_t)plain.len;
	stream->next_out = packed;
	stream->avail_out = (uint32_t)room;
	if (isal_deflate_stateless(stream) != COMP_OK)
		abort();
	pack_add(out, packed, stream->total_out);
}

void pack_zstd(struct buf *out, struct str plain)
{
	size_t room = ZSTD_compressBound(plain.len);
	auto_free char *packed = malloc(room);
	size_t n;

	if (!packed)
		abort();
	n = ZSTD_compress(packed, room, plain.ptr, plain.len, 3);
	if (ZSTD_isError(n))
		abort();
	pack_add(out, packed, n);
}
