/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cut_priv.h - where a stream is cut into chunks, by its content.
 *
 * FastCDC with normalised chunking (Xia and others, "FastCDC: a Fast and
 * Efficient Content-Defined Chunking Approach", USENIX ATC 2016): a rolling
 * gear hash is compared with a stricter mask before the normal size and a
 * looser one after it. Equal bytes behind a cut are cut equally, so a change
 * moves only the cuts around it.
 *
 * The gear table and the masks are part of the store's format: other values
 * cut elsewhere, and share nothing with what is stored.
 */
#pragma once

#include "layers/base/buf.h"

#include <stdint.h>

struct cutter {
	uint64_t gear[256];
};

void cutter_init(struct cutter *cutter);

/*
 * The length of the chunk at the start of bytes; all of them if no cut is
 * found. bytes is at least LAYER_CUT_MAX long, or is the end of the stream.
 */
size_t cutter_find(const struct cutter *cutter, struct str bytes);
