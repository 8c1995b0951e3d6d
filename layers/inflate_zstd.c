/* SPDX-License-Identifier: Apache-2.0 */
/* Format: RFC 8878. Frames, and skippable frames (3.1.2), in any number and order. */
#include "layers/inflate_priv.h"
#include "layers/layer.h"

#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#define ZSTD_WINDOW_LOG_MAX 27 /* of INFLATER_WINDOW_MAX */
#define ZSTD_MAGIC_LEN ((size_t)4)
#define ZSTD_HEADER_MAX ((size_t)18) /* 3.1.1.1, with its magic */

_Static_assert(INFLATER_WINDOW_MAX == (size_t)1 << ZSTD_WINDOW_LOG_MAX, "one number");

/*
 * A frame's first bytes are gathered and recognized here: the library reads a
 * header that comes in pieces differently from a whole one, and its older
 * formats only if they come whole.
 */
struct inflate {
	struct sink *to;
	ZSTD_DCtx *context;
	char first[ZSTD_HEADER_MAX];
	size_t first_len;
	bool inside; /* a frame has begun and not ended */
	bool behind; /* what follows is no frame */
	uint64_t behind_len;
	char out[INFLATE_PIECE];
};

static bool inflate_zstd_starts(struct str bytes)
{
	if (str_starts(bytes, STR("\x28\xb5\x2f\xfd")))
		return true;
	/* A skippable frame: 0x184D2A50 to 0x184D2A5F, little-endian. */
	return bytes.len >= ZSTD_MAGIC_LEN && ((unsigned char)bytes.ptr[0] & 0xf0) == 0x50 &&
	       memcmp(bytes.ptr + 1, "\x2a\x4d\x18", 3) == 0;
}

static struct inflate *inflate_zstd_open(struct sink *out)
{
	struct inflate *inflate = malloc(sizeof(*inflate));

	if (!inflate)
		abort();
	inflate->to = out;
	inflate->context = ZSTD_createDCtx();
	if (!inflate->context ||
	    ZSTD_isError(ZSTD_DCtx_setParameter(inflate->context, ZSTD_d_windowLogMax,
						ZSTD_WINDOW_LOG_MAX)))
		abort();
	inflate->inside = inflate->behind = false;
	inflate->first_len = 0;
	inflate->behind_len = 0;
	return inflate;
}

static void inflate_zstd_close(struct inflate *inflate)
{
	if (!inflate)
		return;
	ZSTD_freeDCtx(inflate->context);
	free(inflate);
}

static int inflate_zstd_fail(size_t code, struct err *err)
{
	if (ZSTD_getErrorCode(code) == ZSTD_error_frameParameter_windowTooLarge)
		return err_set(err, ERR_LIMIT, "zstd stream: its window is larger than 128 MiB");
	return err_set(err, ERR_CORRUPT, "zstd stream: %s", ZSTD_getErrorName(code));
}

/* Inflate until the input is used up or the frame ends; what is left of the input. */
static int inflate_zstd_frame(struct inflate *inflate, struct str *bytes, struct err *err)
{
	ZSTD_inBuffer in = {bytes->ptr, bytes->len, 0};
	bool full = false;

	while (inflate->inside && (in.pos < in.size || full)) {
		ZSTD_outBuffer piece = {inflate->out, sizeof(inflate->out), 0};
		size_t code = ZSTD_decompressStream(inflate->context, &piece, &in);

		if (ZSTD_isError(code))
			return inflate_zstd_fail(code, err);
		inflate->inside = code != 0;
		full = piece.pos == piece.size;
		if (piece.pos > 0 &&
		    inflate->to->write(inflate->to, (struct str){inflate->out, piece.pos}, err) < 0)
			return -1;
	}
	bytes->ptr += in.pos;
	bytes->len -= in.pos;
	return 0;
}

/* Begin a frame with the bytes gathered, or see that they are none. */
static int inflate_zstd_begin(struct inflate *inflate, struct err *err)
{
	struct str first = {inflate->first, inflate->first_len};

	inflate->inside = inflate_zstd_starts(first);
	inflate->behind = !inflate->inside;
	inflate->behind_len = inflate->behind ? first.len : 0;
	if (inflate_zstd_frame(inflate, &first, err) < 0)
		return -1;
	memmove(inflate->first, first.ptr, first.len);
	inflate->first_len = first.len;
	return 0;
}

static int inflate_zstd_gather(struct inflate *inflate, struct str *bytes, struct err *err)
{
	inflate->first[inflate->first_len++] = bytes->ptr[0];
	bytes->ptr++;
	bytes->len--;
	return inflate->first_len == ZSTD_HEADER_MAX ? inflate_zstd_begin(inflate, err) : 0;
}

static int inflate_zstd_write(struct inflate *inflate, struct str bytes, struct err *err)
{
	while (bytes.len > 0 && !inflate->behind) {
		int result = inflate->inside ? inflate_zstd_frame(inflate, &bytes, err)
					     : inflate_zstd_gather(inflate, &bytes, err);

		if (result < 0)
			return -1;
	}
	inflate->behind_len += bytes.len;
	return 0;
}

static int inflate_zstd_finish(struct inflate *inflate, struct err *err)
{
	while (inflate->first_len > 0 && !inflate->inside && !inflate->behind) {
		if (inflate_zstd_begin(inflate, err) < 0)
			return -1;
	}
	return inflate->inside ? err_set(err, ERR_CORRUPT, "zstd stream: it ends too early") : 0;
}

static uint64_t inflate_zstd_behind(const struct inflate *inflate)
{
	return inflate->behind_len;
}

const struct inflate_format inflate_zstd = {
	.starts = inflate_zstd_starts,
	.open = inflate_zstd_open,
	.close = inflate_zstd_close,
	.write = inflate_zstd_write,
	.finish = inflate_zstd_finish,
	.behind = inflate_zstd_behind,
};
