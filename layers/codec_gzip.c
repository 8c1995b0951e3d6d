/* SPDX-License-Identifier: Apache-2.0 */
/* Format: RFC 1952. A frame is one member: no name, no time, no operating system. */
#include "layers/codec_priv.h"

#include <assert.h>
#include <isa-l.h>
#include <stdio.h>

/*
 * The level whose output is the same on every x86 since 2008: level 3 searches
 * differently with AVX2 and AVX-512, and level 1 finds matches in the table
 * that the chunk before left behind.
 */
#define GZIP_LEVEL 2
#define GZIP_TABLES ISAL_DEF_LVL2_REQ /* of the level's memory; tokens are behind them */
#define GZIP_MEMORY ISAL_DEF_LVL2_DEFAULT
#define GZIP_AROUND ((size_t)64)   /* header and trailer, and an end of the stream */
#define GZIP_STORED ((size_t)1024) /* one byte in so many is a stored block's header, at most */

struct codec_context {
	struct isal_zstream *compress; /* owned, like the rest; NULL until it is needed */
	uint8_t *memory;
	struct inflate_state *inflate;
};

/* The library does not tell the version that runs. */
static void gzip_name(char text[static CODEC_NAME_MAX])
{
	int len = snprintf(text, CODEC_NAME_MAX, "gzip-isal%d.%d.%d-l%d", ISAL_MAJOR_VERSION,
			   ISAL_MINOR_VERSION, ISAL_PATCH_VERSION, GZIP_LEVEL);

	assert(len > 0 && (size_t)len < CODEC_NAME_MAX);
}

static struct codec_context *gzip_open(void)
{
	struct codec_context *context = calloc(1, sizeof(*context));

	if (!context)
		abort();
	return context;
}

static void gzip_close(struct codec_context *context)
{
	if (!context)
		return;
	free(context->compress);
	free(context->memory);
	free(context->inflate);
	free(context);
}

static size_t gzip_bound(size_t len)
{
	return len + len / GZIP_STORED + GZIP_AROUND;
}

static int gzip_compress(struct codec_context *context, struct str plain, char *out, size_t room,
			 size_t *out_len, struct err *err)
{
	struct isal_zstream *stream;

	if (!context->compress) {
		context->compress = calloc(1, sizeof(*context->compress));
		context->memory = calloc(1, GZIP_MEMORY);
	}
	if (!context->compress || !context->memory)
		abort();
	stream = context->compress;
	isal_deflate_stateless_init(stream);
	memset(context->memory, 0, GZIP_TABLES); /* each chunk starts from an empty table */
	stream->gzip_flag = IGZIP_GZIP;
	stream->level = GZIP_LEVEL;
	stream->level_buf = context->memory;
	stream->level_buf_size = GZIP_MEMORY;
	stream->end_of_stream = 1;
	stream->next_in = drop_const(plain.ptr);
	stream->avail_in = (uint32_t)plain.len;
	stream->next_out = (uint8_t *)out;
	stream->avail_out = (uint32_t)room;
	if (isal_deflate_stateless(stream) != COMP_OK)
		return err_set(err, ERR_OS, "compress: %zu bytes do not fit into %zu", plain.len,
			       room);
	*out_len = stream->total_out;
	return 0;
}

static int gzip_inflate(struct codec_context *context, struct str frame, char *out,
			size_t plain_len, struct err *err)
{
	struct inflate_state *state;
	int code;

	if (!context->inflate)
		context->inflate = malloc(sizeof(*context->inflate));
	if (!context->inflate)
		abort();
	state = context->inflate;
	isal_inflate_init(state);
	state->crc_flag = ISAL_GZIP;
	state->next_in = drop_const(frame.ptr);
	state->avail_in = (uint32_t)frame.len;
	state->next_out = (uint8_t *)out;
	state->avail_out = (uint32_t)plain_len;
	code = isal_inflate_stateless(state);
	if (code != ISAL_DECOMP_OK)
		return err_set(err, ERR_CORRUPT, "inflate: %s",
			       code == ISAL_OUT_OVERFLOW ? "more than was stored"
							 : "a damaged member");
	if (state->total_out != plain_len || state->avail_in != 0)
		return err_set(err, ERR_CORRUPT, "inflate: %u bytes where %zu were stored",
			       state->total_out, plain_len);
	return 0;
}

const struct codec codec_gzip = {
	.name = gzip_name,
	.open = gzip_open,
	.close = gzip_close,
	.bound = gzip_bound,
	.compress = gzip_compress,
	.inflate = gzip_inflate,
};
