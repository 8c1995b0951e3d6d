/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bake_log.h - what a bake of the daemon wrote: logs/<bake id>, one file each.
 *
 * It only grows at its end, so a reader who follows it reads on from where he
 * was; a second attempt appends to the first. Steps have their own logs
 * (step_log.h), which stay as long as the step's record; this one goes with its
 * bake's.
 *
 * Durability: none is promised, since no record names it.
 */
#pragma once

#include "layers/store.h"

#define BAKE_LOG_BYTES_MAX ((uint64_t)16 * 1024 * 1024) /* more is not kept */

struct bake_log {
	int fd; /* -1 when closed */
	uint64_t size;
};

#define BAKE_LOG_INIT ((struct bake_log){.fd = -1})

/* id is a bake's ("bak_…"), here and below. */
int bake_log_open(struct store *store, struct str id, struct bake_log *out, struct err *err)
	MUST_CHECK;

/* Append. At the ceiling it says once that the rest is left out. */
int bake_log_add(struct bake_log *log, struct str bytes, struct err *err) MUST_CHECK;
void bake_log_close(struct bake_log *log);

/* Append what is there from an offset on, as far as the buf has room. 0 where there is no log. */
int bake_log_read(struct store *store, struct str id, uint64_t offset, struct buf *out,
		  struct err *err) MUST_CHECK;

/* Best effort: a log without a bake does no harm. */
void bake_log_remove(struct store *store, struct str id);

static inline void auto_bake_log_release(struct bake_log *slot)
{
	bake_log_close(slot);
}
#define auto_bake_log AUTO(bake_log)
