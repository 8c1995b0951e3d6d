/* SPDX-License-Identifier: Apache-2.0 */
/* Format: RFC 8878. A frame says how long its content is, and has no checksum. */
#include "layers/codec_priv.h"

#include <assert.h>
#include <stdio.h>
#include <zstd.h>

#define ZSTD_LEVEL 3

struct codec_context {
	ZSTD_CCtx *compress; /* either is NULL until it is needed */
	ZSTD_DCtx *inflate;
};

/* The version that runs, not the one compiled against: it makes the bytes. */
static void zstd_name(char text[static CODEC_NAME_MAX])
{
	int len = snprintf(text, CODEC_NAME_MAX, "zstd-%s-l%d", ZSTD_versionString(), ZSTD_LEVEL);

	assert(len > 0 && (size_t)len < CODEC_NAME_MAX);
}

static struct codec_context *zstd_open(void)
{
	struct codec_context *context = calloc(1, sizeof(*context));

	if (!context)
		abort();
	return context;
}

static void zstd_close(struct codec_context *context)
{
	if (!context)
		return;
	ZSTD_freeCCtx(context->compress);
	ZSTD_freeDCtx(context->inflate);
	free(context);
}

static size_t zstd_bound(size_t len)
{
	return ZSTD_compressBound(len);
}

static int zstd_compress(struct codec_context *context, struct str plain, char *out, size_t room,
			 size_t *out_len, struct err *err)
{
	size_t n;

	if (!context->compress)
		context->compress = ZSTD_createCCtx();
	if (!context->compress)
		abort();
	n = ZSTD_compressCCtx(context->compress, out, room, plain.ptr, plain.len, ZSTD_LEVEL);
	if (ZSTD_isError(n))
		return err_set(err, ERR_OS, "compress: %s", ZSTD_getErrorName(n));
	*out_len = n;
	return 0;
}

static int zstd_inflate(struct codec_context *context, struct str frame, char *out,
			size_t plain_len, struct err *err)
{
	size_t n;

	if (!context->inflate)
		context->inflate = ZSTD_createDCtx();
	if (!context->inflate)
		abort();
	n = ZSTD_decompressDCtx(context->inflate, out, plain_len, frame.ptr, frame.len);
	if (ZSTD_isError(n))
		return err_set(err, ERR_CORRUPT, "inflate: %s", ZSTD_getErrorName(n));
	if (n != plain_len)
		return err_set(err, ERR_CORRUPT, "inflate: %zu bytes where %zu were stored", n,
			       plain_len);
	return 0;
}

const struct codec codec_zstd = {
	.name = zstd_name,
	.open = zstd_open,
	.close = zstd_close,
	.bound = zstd_bound,
	.compress = zstd_compress,
	.inflate = zstd_inflate,
};
