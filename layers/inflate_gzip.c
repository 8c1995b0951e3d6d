/* SPDX-License-Identifier: Apache-2.0 */
/* Format: RFC 1952. Members one after another are one stream of bytes (2.2). */
#include "layers/inflate_priv.h"

#include <isa-l/igzip_lib.h>
#include <stdlib.h>

#define GZIP_MAGIC "\x1f\x8b\x08"
#define GZIP_MAGIC_LEN ((size_t)3)
#define GZIP_FLAGS_AT ((size_t)3)
#define GZIP_FIXED_LEN ((size_t)10)

enum gzip_flag {
	GZIP_HAS_CRC = 1 << 1,
	GZIP_HAS_EXTRA = 1 << 2,
	GZIP_HAS_NAME = 1 << 3,
	GZIP_HAS_COMMENT = 1 << 4,
	GZIP_RESERVED = 7 << 5,
};

/* What a member is made of, in order, and what may stand behind the last one. */
enum gzip_part {
	GZIP_FIXED,
	GZIP_EXTRA_LEN,
	GZIP_EXTRA,
	GZIP_NAME,
	GZIP_COMMENT,
	GZIP_CRC,
	GZIP_BODY, /* with its trailer: ISA-L's */
	GZIP_BEHIND,
};

/*
 * Headers are read here, since ISA-L's reader refuses the checksum of a header
 * that comes in pieces. That checksum may be skipped (2.3.1.2); the body has
 * its own.
 */
struct inflate {
	struct sink *to;
	struct inflate_state state;
	enum gzip_part part;
	size_t at; /* bytes of this part so far */
	uint64_t behind;
	uint8_t flags;
	size_t extra_len;
	uint8_t out[INFLATE_PIECE];
};

static bool gzip_starts(struct str bytes)
{
	return str_starts(bytes, STR(GZIP_MAGIC));
}

static struct inflate *gzip_open(struct sink *out)
{
	struct inflate *inflate = malloc(sizeof(*inflate));

	if (!inflate)
		abort();
	inflate->to = out;
	isal_inflate_init(&inflate->state);
	inflate->part = GZIP_FIXED;
	inflate->at = 0;
	inflate->behind = 0;
	return inflate;
}

static void gzip_close(struct inflate *inflate)
{
	free(inflate);
}

static int gzip_fail(int code, struct err *err)
{
	const char *what =
		code == ISAL_INCORRECT_CHECKSUM ? "its checksum does not match" : "damaged";

	return err_set(err, ERR_CORRUPT, "gzip stream: %s", what);
}

/* Inflate until the input is used up or the member ends; what is left of the input. */
static int gzip_body(struct inflate *inflate, struct str *bytes, struct err *err)
{
	struct inflate_state *state = &inflate->state;

	state->next_in = drop_const(bytes->ptr);
	state->avail_in = (uint32_t)bytes->len;
	do {
		int code;

		state->next_out = inflate->out;
		state->avail_out = sizeof(inflate->out);
		code = isal_inflate(state);
		if (code != ISAL_DECOMP_OK)
			return gzip_fail(code, err);
		if (state->avail_out < sizeof(inflate->out) &&
		    inflate->to->write(inflate->to,
				       (struct str){(const char *)inflate->out,
						    sizeof(inflate->out) - state->avail_out},
				       err) < 0)
			return -1;
	} while (state->block_state != ISAL_BLOCK_FINISH &&
		 (state->avail_in > 0 || state->avail_out == 0));
	bytes->ptr = (const char *)state->next_in;
	bytes->len = state->avail_in;
	if (state->block_state == ISAL_BLOCK_FINISH) {
		inflate->part = GZIP_FIXED;
		inflate->at = 0;
	}
	return 0;
}

static bool gzip_has(const struct inflate *inflate, enum gzip_part part)
{
	switch (part) {
	case GZIP_EXTRA_LEN:
		return inflate->flags & GZIP_HAS_EXTRA;
	case GZIP_EXTRA:
		return (inflate->flags & GZIP_HAS_EXTRA) && inflate->extra_len > 0;
	case GZIP_NAME:
		return inflate->flags & GZIP_HAS_NAME;
	case GZIP_COMMENT:
		return inflate->flags & GZIP_HAS_COMMENT;
	case GZIP_CRC:
		return inflate->flags & GZIP_HAS_CRC;
	case GZIP_FIXED:
	case GZIP_BODY:
	case GZIP_BEHIND:
		break;
	}
	return true;
}

/* Take a byte of the header; whether its part ends with it. */
static bool gzip_take(struct inflate *inflate, uint8_t byte)
{
	size_t at = inflate->at++;

	switch (inflate->part) {
	case GZIP_FIXED:
		if (at == GZIP_FLAGS_AT)
			inflate->flags = byte;
		return at + 1 == GZIP_FIXED_LEN;
	case GZIP_EXTRA_LEN:
		inflate->extra_len = at == 0 ? byte : inflate->extra_len | (size_t)byte << 8;
		return at == 1;
	case GZIP_EXTRA:
		return at + 1 == inflate->extra_len;
	case GZIP_NAME:
	case GZIP_COMMENT:
		return byte == 0;
	case GZIP_CRC:
		return at == 1;
	case GZIP_BODY:
	case GZIP_BEHIND:
		break;
	}
	return false;
}

static int gzip_next_part(struct inflate *inflate, struct err *err)
{
	if (inflate->flags & GZIP_RESERVED)
		return err_set(err, ERR_CORRUPT, "gzip stream: its header has unknown flags");
	do
		inflate->part++;
	while (!gzip_has(inflate, inflate->part));
	inflate->at = 0;
	if (inflate->part == GZIP_BODY) {
		isal_inflate_reset(&inflate->state);
		inflate->state.crc_flag = ISAL_GZIP_NO_HDR_VER;
	}
	return 0;
}

/* A byte of the header, or the first byte of something that is no member. */
static int gzip_header(struct inflate *inflate, struct str *bytes, struct err *err)
{
	bool in_magic = inflate->part == GZIP_FIXED && inflate->at < GZIP_MAGIC_LEN;

	if (in_magic && bytes->ptr[0] != GZIP_MAGIC[inflate->at]) {
		inflate->part = GZIP_BEHIND;
		inflate->behind = inflate->at;
		return 0;
	}
	if (gzip_take(inflate, (uint8_t)bytes->ptr[0]) && gzip_next_part(inflate, err) < 0)
		return -1;
	bytes->ptr++;
	bytes->len--;
	return 0;
}

static int gzip_write(struct inflate *inflate, struct str bytes, struct err *err)
{
	while (bytes.len > 0 && inflate->part != GZIP_BEHIND) {
		int result = inflate->part == GZIP_BODY ? gzip_body(inflate, &bytes, err)
							: gzip_header(inflate, &bytes, err);

		if (result < 0)
			return -1;
	}
	inflate->behind += bytes.len;
	return 0;
}

static int gzip_finish(struct inflate *inflate, struct err *err)
{
	/* Less than a magic is padding too. */
	if (inflate->part == GZIP_BEHIND ||
	    (inflate->part == GZIP_FIXED && inflate->at < GZIP_MAGIC_LEN))
		return 0;
	return err_set(err, ERR_CORRUPT, "gzip stream: it ends too early");
}

static uint64_t gzip_behind(const struct inflate *inflate)
{
	return inflate->part == GZIP_BEHIND ? inflate->behind : inflate->at;
}

const struct inflate_format inflate_gzip = {
	.starts = gzip_starts,
	.open = gzip_open,
	.close = gzip_close,
	.write = gzip_write,
	.finish = gzip_finish,
	.behind = gzip_behind,
};
