/* SPDX-License-Identifier: Apache-2.0 */
/*
 * use.h - when a thing was last used, where no record is written for it.
 *
 * A cached bake commits nothing; what it used it notes here by one system call:
 * the time of an empty file, used/<digest hex>. Nothing is synced, so a power
 * cut may take the last notes with it; a record's own time is as old as that.
 */
#pragma once

#include "layers/digest.h"
#include "layers/store.h"

/* Best effort: what cannot be noted seems older than it is. */
void use_note(struct store *store, const struct digest *digest);

/* 1 and when, 0 it was never noted, -1. */
int use_find(struct store *store, const struct digest *digest, int64_t *out_ms, struct err *err)
	MUST_CHECK;

void use_forget(struct store *store, const struct digest *digest);
