/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec_priv.h - how a chunk of a layer is compressed: one file a format.
 *
 * A codec makes of plain bytes one complete frame (or member), such that
 * frames one after another are a valid stream of the format. Its name carries
 * level and library version: equal names give equal bytes, so digests do not
 * depend on what a store has seen before.
 */
#pragma once

#include "layers/chunk_priv.h"

#define CODEC_NAME_MAX (CHUNK_CODEC_MAX + 1)

struct codec_context; /* of one thread */

struct codec {
	void (*name)(char text[static CODEC_NAME_MAX]);
	struct codec_context *(*open)(void);
	void (*close)(struct codec_context *context);
	/* The most bytes that a frame of len plain bytes can have. */
	size_t (*bound)(size_t len);
	int (*compress)(struct codec_context *context, struct str plain, char *out, size_t room,
			size_t *out_len, struct err *err);
	/* Inflate a frame of ours; ERR_CORRUPT unless it is exactly plain_len bytes. */
	int (*inflate)(struct codec_context *context, struct str frame, char *out, size_t plain_len,
		       struct err *err);
};

extern const struct codec codec_zstd;
extern const struct codec codec_gzip;
