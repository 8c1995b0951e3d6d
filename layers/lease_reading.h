/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_reading.h - what holds a blob while it is read for a peer that may be slow.
 *
 * A lease for each reader would be a file and a descriptor for each. Those who
 * read at one time name their blobs in one that rests; it ends with the last of
 * them, and takes no more names when it is old or long, so that it does end. It
 * holds what is named in it, and nothing that is put meanwhile.
 *
 * Threads: any. Memory: a few words for each reader that began it.
 */
#pragma once

#include "layers/lease.h"

struct lease_reading;

/* Look for the blob after this has returned. */
int lease_reading_begin(struct store *store, const struct digest *blob, struct lease_reading **out,
			struct err *err) MUST_CHECK;
void lease_reading_end(struct lease_reading *reading);

DEFINE_AUTO(lease_reading, struct lease_reading *, lease_reading_end);
