/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/layers/packing.h"

#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <zstd.h>

#define PACK_SLACK ((size_t)4096)
#define PACK_GZIP_FLAGS_AT 3
#define PACK_GZIP_FIXED ((size_t)10)

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
	stream->next_in = drop_const(plain.ptr);
	stream->avail_in = (uint32_t)plain.len;
	stream->next_out = packed;
	stream->avail_out = (uint32_t)room;
	if (isal_deflate_stateless(stream) != COMP_OK)
		abort();
	pack_add(out, packed, stream->total_out);
}

void pack_gzip_full_header(struct buf *out, struct str plain)
{
	static const char fields[] = "\x08\0AB\x04\0abcd" /* extra */
				     "layer.tar\0"        /* name */
				     "as it was sent";    /* comment, with its NUL */
	auto_buf struct buf member = BUF_INIT(out->max);
	size_t start = out->len;
	uint32_t crc;
	char sum[2];

	pack_gzip(&member, plain);
	pack_add(out, member.ptr, PACK_GZIP_FIXED);
	out->ptr[start + PACK_GZIP_FLAGS_AT] = 0x1e;
	pack_add(out, fields, sizeof(fields));
	crc = crc32_gzip_refl(0, (unsigned char *)out->ptr + start, out->len - start);
	sum[0] = (char)(crc & 0xff);
	sum[1] = (char)(crc >> 8 & 0xff);
	pack_add(out, sum, sizeof(sum));
	pack_add(out, member.ptr + PACK_GZIP_FIXED, member.len - PACK_GZIP_FIXED);
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

void pack_zstd_window(struct buf *out, struct str plain, int log)
{
	size_t room = ZSTD_compressBound(plain.len);
	auto_free char *packed = malloc(room);
	ZSTD_CCtx *context = ZSTD_createCCtx();
	ZSTD_outBuffer to = {packed, room, 0};
	ZSTD_inBuffer from = {plain.ptr, plain.len, 0};

	if (!packed || !context ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, log)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1)) ||
	    /* Of a stream whose size is not known the frame tells a window. */
	    ZSTD_isError(ZSTD_compressStream2(context, &to, &from, ZSTD_e_continue)) ||
	    ZSTD_compressStream2(context, &to, &from, ZSTD_e_end) != 0)
		abort();
	pack_add(out, packed, to.pos);
	ZSTD_freeCCtx(context);
}

void pack_zstd_skippable(struct buf *out, struct str bytes)
{
	char head[8] = "\x50\x2a\x4d\x18";

	for (size_t i = 0; i < 4; i++)
		head[4 + i] = (char)(bytes.len >> (8 * i) & 0xff);
	pack_add(out, head, sizeof(head));
	pack_add(out, bytes.ptr, bytes.len);
}
