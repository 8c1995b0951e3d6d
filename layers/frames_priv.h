/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames_priv.h - the chunks of a layer that is being made, as frames of a blob,
 * compressed on all cores and stored in order.
 *
 * Threads: one caller; workers and a collector of its own, from the third
 * chunk to the end. Memory: as layer.h says.
 */
#pragma once

#include "layers/layer.h"

struct frames;
int frames_open(struct store *store, enum layer_codec codec, struct frames **out, struct err *err)
	MUST_CHECK;

/* Without frames_finish() its work is dropped. */
void frames_close(struct frames *frames);

/* The next chunk: LAYER_CUT_MAX bytes at most, copied. Waits for a free slot. */
int frames_add(struct frames *frames, struct str plain, struct err *err) MUST_CHECK;

/* Commit the blob. All of *out is set but the tar's size. */
int frames_finish(struct frames *frames, struct layer_info *out, struct err *err) MUST_CHECK;

DEFINE_AUTO(frames, struct frames *, frames_close);
