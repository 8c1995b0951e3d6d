/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step.h - what a step once made, found again by its key.
 *
 * A key is a sha256 over everything that the step's result depends on (made by
 * bake/). The record names the layer, or says that there is none, and the log;
 * both are durable before it. A second table entry finds an earlier layer with
 * the same content on the same parent, for early cut-off.
 */
#pragma once

#include "layers/codec.h"
#include "layers/digest.h"
#include "layers/meta.h"
#include "layers/step_log.h"

struct step_record {
	struct digest key;
	bool empty; /* no layer */
	struct digest blob;
	enum layer_codec codec; /* of the blob; variant.h has the other */
	struct digest diff_id;
	uint64_t blob_size;    /* bytes */
	uint64_t tar_size;     /* bytes */
	uint64_t linked_bytes; /* of the tar; see diff.h */
	bool cut_off;       /* an earlier equal layer, or another step's, stands in for its own */
	int64_t created_ms; /* for config and history, never this bake's clock */

	/* details: */
	int64_t duration_ms;
	struct digest parent;  /* chain id below; all zero on scratch */
	struct digest content; /* see diff.h; the diff id, where times count as well */
	struct step_log log;
	json_t *components; /* owned; what the key was made of, for `hearth why` */
};

#define STEP_RECORD_INIT ((struct step_record){.log = STEP_LOG_INIT})

/* 1 hit, 0 miss, -1. The details are read, and *out has them, only when asked for. */
int step_find(struct meta *meta, const struct digest *key, bool with_details,
	      struct step_record *out, struct err *err) MUST_CHECK;

/*
 * Record what a step made. Early cut-off happens here, in the transaction that
 * writes the record: where an earlier layer has the same content on the same
 * parent, *record names that one, and its time, afterwards. The log of an
 * earlier failure of this step is removed.
 */
int step_put(struct meta *meta, struct step_record *record, struct err *err) MUST_CHECK;

/* 1 an earlier layer with this content on this parent, details and all; 0 none, -1. */
int step_find_content(struct meta *meta, const struct digest *parent, const struct digest *content,
		      struct step_record *out, struct err *err) MUST_CHECK;

/* Every record, without its details, until fn returns non-zero, which is returned. */
typedef int step_each_fn(void *ctx, const struct step_record *record, struct err *err);
int step_each(struct meta *meta, step_each_fn *fn, void *ctx, struct err *err) MUST_CHECK;

/*
 * The blobs that only steps' records name: logs (of failed steps, too) that are
 * blobs, and listings of what steps read.
 */
typedef int step_log_each_fn(void *ctx, const struct digest *key, const struct digest *blob,
			     struct err *err);
int step_each_log(struct meta *meta, step_log_each_fn *fn, void *ctx, struct err *err) MUST_CHECK;

/* Forget what a step made: it runs again. 1 removed, 0 was not there, -1. */
int step_remove(struct meta *meta, const struct digest *key, struct err *err) MUST_CHECK;

void step_record_done(struct step_record *record);
static inline void auto_step_record_release(struct step_record *slot)
{
	step_record_done(slot);
}
#define auto_step_record AUTO(step_record)
