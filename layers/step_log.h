/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_log.h - what a step wrote, whole: in the record that names it where it
 * is short, else in a blob that is durable before the record.
 */
#pragma once

#include "layers/base/json.h"
#include "layers/base/sink.h"
#include "layers/digest.h"
#include "layers/store.h"

#define STEP_LOG_INLINE_MAX ((size_t)2048) /* longer ones are blobs */

struct step_log {
	uint64_t size;         /* bytes, whole */
	struct digest blob;    /* a layer's: compressed; all zero when inline */
	struct buf inline_log; /* owned */
};

#define STEP_LOG_INIT ((struct step_log){.inline_log = BUF_INIT(STEP_LOG_INLINE_MAX)})

/* As members of a record, and back; parse replaces what *out had. */
void step_log_format(const struct step_log *log, json_t *record);
int step_log_parse(const json_t *record, struct step_log *out, struct err *err) MUST_CHECK;

/* Its bytes, from the first to the last. */
int step_log_copy(struct store *store, const struct step_log *log, struct sink *out,
		  struct err *err) MUST_CHECK;

void step_log_done(struct step_log *log);

static inline void auto_step_log_release(struct step_log *slot)
{
	step_log_done(slot);
}
#define auto_step_log AUTO(step_log)
