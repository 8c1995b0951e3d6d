/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_priv.h - a compressed format, fed in pieces of any size. One file a
 * format; inflater.c chooses by the first bytes.
 */
#pragma once

#include "layers/base/sink.h"

#include <stdint.h>

#define INFLATE_PIECE ((size_t)128 * 1024) /* bytes given to the sink at once, at most */

struct inflate_format {
	/* Whether a stream of this format starts with these (at most 4) bytes. */
	bool (*starts)(struct str bytes);
	/* Its plain bytes go to out, which outlives it. */
	struct inflate *(*open)(struct sink *out);
	void (*close)(struct inflate *inflate);
	/* Any number of streams, one after another; what follows the last one is ignored. */
	int (*write)(struct inflate *inflate, struct str bytes, struct err *err);
	/* ERR_CORRUPT in the middle of a stream. */
	int (*finish)(struct inflate *inflate, struct err *err);
	/* After that, how many bytes were ignored. */
	uint64_t (*behind)(const struct inflate *inflate);
};

extern const struct inflate_format inflate_gzip;
extern const struct inflate_format inflate_zstd;

/* ERR_LIMIT, in the same words wherever a layer is inflated. Returns -1. */
int inflater_too_much(uint64_t max, struct err *err);
