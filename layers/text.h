/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.h - bytes of our own that are kept as a blob of zstd frames: the log of
 * a step, the listing of what it read.
 *
 * They are never foreign and no layer: reading and writing them needs no other
 * codec, and no threads.
 */
#pragma once

#include "layers/base/sink.h"
#include "layers/digest.h"

struct store;

/* Durable when it returns 0. Equal texts share their frames. */
int text_put(struct store *store, struct str text, struct digest *out, struct err *err) MUST_CHECK;

/* The whole of it, in order. ERR_CORRUPT for frames that are none of a text's. */
int text_copy(struct store *store, const struct digest *blob, struct sink *out, struct err *err)
	MUST_CHECK;
