/* SPDX-License-Identifier: Apache-2.0 */
/* Format: RFC 1952. Members one after another are one stream of bytes (2.2). */
#include "layers/inflate_priv.h"

#include <isa-l/igzip_lib.h>
#include <stdlib.h>

#define GZIP_MAGIC "\x1f\x8b\x08"
#define GZIP_MAGIC_LEN ((size_t)3)

enum gzip_place { GZIP_BETWEEN, GZIP_INSIDE, GZIP_BEHIND };

struct inflate {
	struct inflate_state state;
	enum gzip_place place;
	size_t matched; /* bytes of the magic seen, between members */
	uint8_t out[INFLATE_PIECE];
};

static bool gzip_starts(struct str bytes)
{
	return str_starts(bytes, STR(GZIP_MAGIC));
}

static struct inflate *gzip_open(void)
{
	struct inflate *inflate = malloc(sizeof(*inflate));

	if (!inflate)
		abort();
	isal_inflate_init(&inflate->state);
	inflate->place = GZIP_BETWEEN;
	inflate->matched = 0;
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
static int gzip_inside(struct inflate *inflate, struct str *bytes, struct sink *out,
		       struct err *err)
{
	struct inflate_state *state = &inflate->state;

	state->next_in = (uint8_t *)(uintptr_t)bytes->ptr;
	state->avail_in = (uint32_t)bytes->len;
	do {
		int code;

		state->next_out = inflate->out;
		state->avail_out = sizeof(inflate->out);
		code = isal_inflate(state);
		if (code != ISAL_DECOMP_OK)
			return gzip_fail(code, err);
		if (state->avail_out < sizeof(inflate->out) &&
		    out->write(out,
			       (struct str){(const char *)inflate->out,
					    sizeof(inflate->out) - state->avail_out},
			       err) < 0)
			return -1;
	} while (state->block_state != ISAL_BLOCK_FINISH &&
		 (state->avail_in > 0 || state->avail_out == 0));
	bytes->ptr = (const char *)state->next_in;
	bytes->len = state->avail_in;
	if (state->block_state == ISAL_BLOCK_FINISH) {
		inflate->place = GZIP_BETWEEN;
		inflate->matched = 0;
	}
	return 0;
}

/* The magic of a next member may come in pieces. */
static int gzip_between(struct inflate *inflate, struct str *bytes, struct sink *out,
			struct err *err)
{
	struct str magic = STR(GZIP_MAGIC);

	while (bytes->len > 0 && inflate->matched < GZIP_MAGIC_LEN) {
		if (bytes->ptr[0] != magic.ptr[inflate->matched]) {
			inflate->place = GZIP_BEHIND;
			return 0;
		}
		inflate->matched++;
		bytes->ptr++;
		bytes->len--;
	}
	if (inflate->matched < GZIP_MAGIC_LEN)
		return 0;
	isal_inflate_reset(&inflate->state);
	inflate->state.crc_flag = ISAL_GZIP;
	inflate->place = GZIP_INSIDE;
	return gzip_inside(inflate, &magic, out, err);
}

static int gzip_write(struct inflate *inflate, struct str bytes, struct sink *out, struct err *err)
{
	while (bytes.len > 0 && inflate->place != GZIP_BEHIND) {
		int result = inflate->place == GZIP_INSIDE
				     ? gzip_inside(inflate, &bytes, out, err)
				     : gzip_between(inflate, &bytes, out, err);

		if (result < 0)
			return -1;
	}
	return 0;
}

static int gzip_finish(struct inflate *inflate, struct err *err)
{
	if (inflate->place == GZIP_INSIDE)
		return err_set(err, ERR_CORRUPT, "gzip stream: it ends too early");
	return 0;
}

const struct inflate_format inflate_gzip = {
	.starts = gzip_starts,
	.open = gzip_open,
	.close = gzip_close,
	.write = gzip_write,
	.finish = gzip_finish,
};
