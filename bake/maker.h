/* SPDX-License-Identifier: Apache-2.0 */
/*
 * maker.h - what makes the images of the queue's bakes: a process for each
 * bake, or a test's stand-in.
 *
 * 	make       all but the image's name; everything is durable when it returns
 * 	publish    the image becomes known, in the queue's own transaction
 * 	restore    an image that was known before is what the version stands for again
 * 	release    what `make` kept until the image was published
 *
 * Threads: several bakes are made at once, each in a thread of its own.
 */
#pragma once

#include "bake/bakes.h"
#include "bake/instruction.h"
#include "bake/status.h"
#include "layers/base/cancel.h"

struct maker_order {
	const struct bakes_record *record;
	const struct digest *base;     /* what the base's name stood for when last baked, or NULL */
	const struct digest *previous; /* the image that is served now, or NULL */
};

/* Progress and log, in the thread that makes. */
struct maker_ear {
	void (*progress)(void *ctx, const struct status_progress *progress);
	void (*log)(void *ctx, struct str bytes);
	void *ctx;
};

struct maker_result {
	struct digest image;
	struct digest base; /* all zero for scratch */
	uint64_t size;      /* bytes */
	size_t steps;
	size_t cached_steps;
	struct instruction_counts counts;
	const json_t *pushes; /* borrowed: canonical references that it goes to; NULL for none */
	void *kept;           /* the maker's own */

	/* where it failed: */
	bool terminal; /* it would fail again */
	size_t step;   /* from 1; 0 where it was none's */
	size_t line;   /* of its text, from 1; 0 where it was not refused */
	int exit_code;
	struct buf log_tail; /* owned */
};

#define MAKER_RESULT_INIT ((struct maker_result){.log_tail = BUF_INIT((size_t)64 * 1024)})

/* What the image is called. */
struct maker_names {
	struct str slug;
	int64_t version;
	bool latest;     /* no later version has an image */
	struct str kept; /* see job.h */
};

/* What is served again, and goes to these references in the name of that bake. */
struct maker_return {
	struct maker_names names;
	const struct digest *image;
	const char *bake_id;
	const json_t *pushes;
};

struct maker {
	/* ERR_CANCELLED soon after the cancel was raised. */
	int (*make)(struct maker *maker, const struct maker_order *order,
		    const struct maker_ear *ear, const struct cancel *cancel,
		    struct maker_result *out, struct err *err);
	int (*publish)(struct maker *maker, struct meta *meta, const struct maker_result *result,
		       const struct maker_names *names, struct err *err);
	int (*restore)(struct maker *maker, struct meta *meta, const struct maker_return *what,
		       struct err *err);
	void (*release)(struct maker *maker, struct maker_result *result);
};
