/* SPDX-License-Identifier: Apache-2.0 */
/*
 * use.h - when something was last used, where no record is written for that.
 *
 * A cached bake commits nothing; it notes what it used by one system call,
 * which sets the time of an empty file, used/<digest hex>. Nothing is synced,
 * so a power cut may take the last notes with it; then the record's own time
 * counts.
 */
#pragma once

#include "layers/digest.h"
#include "layers/store.h"

/* Best effort: without its note a thing seems to be unused for longer. */
void use_note(struct store *store, const struct digest *digest);

/* 1 and when, 0 it was never noted, -1. */
int use_find(struct store *store, const struct digest *digest, int64_t *out_ms, struct err *err)
	MUST_CHECK;

void use_forget(struct store *store, const struct digest *digest);
