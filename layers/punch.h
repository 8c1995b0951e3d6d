/* SPDX-License-Identifier: Apache-2.0 */
/*
 * punch.h - unused pages of the databases go back to the file system.
 *
 * LMDB's file never shrinks: pages that are given back wait in its free list to
 * be used again. Holes are punched in those that no snapshot can see, neither a
 * reader's nor the one that a power cut would bring back, while no writer is at
 * work; so whenever it is killed, nothing that is named was lost.
 *
 * PUNCH_RESERVE stays, so that a collection can write when the disk is full.
 */
#pragma once

#include "layers/base/cancel.h"
#include "layers/store.h"

#define PUNCH_RESERVE ((uint64_t)4 * 1024 * 1024)
#define PUNCH_STEP_MS 40 /* writers wait so long */

/*
 * Punch both databases; *out is how much less of the disk their files take. A
 * file system without holes is no error, and gives nothing back.
 */
int punch_store(struct store *store, const struct cancel *cancel, uint64_t *out, struct err *err)
	MUST_CHECK;

struct punch_account {
	uint64_t disk_bytes; /* that the files take */
	uint64_t live_bytes; /* of pages in use */
};

int punch_measure(struct store *store, struct punch_account *out, struct err *err) MUST_CHECK;
