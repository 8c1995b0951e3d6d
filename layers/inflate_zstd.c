/* SPDX-License-Identifier: Apache-2.0 */
/* Format: RFC 8878. Frames, and skippable frames (3.1.2), in any number and order. */
#include "layers/inflate_priv.h"
#include "layers/layer.h"

#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#define ZSTD_WINDOW_LOG_MAX 27 /* of INFLATER_WINDOW_MAX */
#define ZSTD_MAGIC_LEN ((size_t)4)

_Static_assert(INFLATER_WINDOW_MAX == (size_t)1 << ZSTD_WINDOW_LOG_MAX, "one number");

struct inflate {
	ZSTD_DCtx *context;
	bool inside;     /* a frame has begun and not ended */
	size_t frame_in; /* its bytes so far */
	bool behind;     /* what follows is no frame */
	bool any;        /* one frame ended */
	char out[INFLATE_PIECE];
};

static bool zstd_starts(struct str bytes)
{
	if (str_starts(bytes, STR("\x28\xb5\x2f\xfd")))
		return true;
	/* A skippable frame: 0x184D2A50 to 0x184D2A5F, little-endian. */
	return bytes.len >= ZSTD_MAGIC_LEN && ((unsigned char)bytes.ptr[0] & 0xf0) == 0x50 &&
	       memcmp(bytes.ptr + 1, "\x2a\x4d\x18", 3) == 0;
}

static struct inflate *zstd_open(void)
{
	struct inflate *inflate = malloc(sizeof(*inflate));

	if (!inflate)
		abort();
	inflate->context = ZSTD_createDCtx();
	if (!inflate->context ||
	    ZSTD_isError(ZSTD_DCtx_setParameter(inflate->context, ZSTD_d_windowLogMax,
						ZSTD_WINDOW_LOG_MAX)))
		abort();
	inflate->inside = inflate->behind = inflate->any = false;
	inflate->frame_in = 0;
	return inflate;
}

static void zstd_close(struct inflate *inflate)
{
	if (!inflate)
		return;
	ZSTD_freeDCtx(inflate->context);
	free(inflate);
}

static int zstd_fail(struct inflate *inflate, size_t code, struct err *err)
{
	ZSTD_ErrorCode why = ZSTD_getErrorCode(code);

	/* Padding behind the last frame is no damage. */
	if (why == ZSTD_error_prefix_unknown && inflate->any) {
		inflate->behind = true;
		return 0;
	}
	if (why == ZSTD_error_frameParameter_windowTooLarge)
		return err_set(err, ERR_LIMIT, "zstd stream: its window is larger than 128 MiB");
	return err_set(err, ERR_CORRUPT, "zstd stream: %s", ZSTD_getErrorName(code));
}

static int zstd_write(struct inflate *inflate, struct str bytes, struct sink *out, struct err *err)
{
	ZSTD_inBuffer in = {bytes.ptr, bytes.len, 0};
	bool full = false;

	while (!inflate->behind && (in.pos < in.size || full)) {
		ZSTD_outBuffer piece = {inflate->out, sizeof(inflate->out), 0};
		size_t before = in.pos;
		size_t code = ZSTD_decompressStream(inflate->context, &piece, &in);

		if (ZSTD_isError(code))
			return zstd_fail(inflate, code, err);
		inflate->frame_in += in.pos - before;
		inflate->inside = code != 0;
		if (code == 0) {
			inflate->any = true;
			inflate->frame_in = 0;
		}
		full = piece.pos == piece.size && code != 0;
		if (piece.pos > 0 &&
		    out->write(out, (struct str){inflate->out, piece.pos}, err) < 0)
			return -1;
	}
	return 0;
}

static int zstd_finish(struct inflate *inflate, struct err *err)
{
	/* Less than a magic is padding too. */
	if (inflate->behind || !inflate->inside ||
	    (inflate->any && inflate->frame_in < ZSTD_MAGIC_LEN))
		return 0;
	return err_set(err, ERR_CORRUPT, "zstd stream: it ends too early");
}

const struct inflate_format inflate_zstd = {
	.starts = zstd_starts,
	.open = zstd_open,
	.close = zstd_close,
	.write = zstd_write,
	.finish = zstd_finish,
};
