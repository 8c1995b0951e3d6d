/* SPDX-License-Identifier: Apache-2.0 */
/*
 * why.h - why a step of a spec would run: what differs between its key and
 * that of the nearest step that did run.
 *
 * The spec is walked as by a bake, but nothing is asked of others, pulled or
 * made. The nearest step is the one of the same instruction that has most in
 * common with it: the same words, then the same parent, then words like its own.
 */
#pragma once

#include "bake/bake.h"

enum why_status {
	WHY_CACHED,  /* it is found, and would not run */
	WHY_NOTHING, /* it makes no layer, so nothing runs */
	WHY_DIFFERS, /* it would run; see `differences` */
	WHY_NEW,     /* it would run; no step like it ever did here */
};

struct why {
	enum why_status status;
	size_t step; /* from 1; the one asked for, or the first above it that would run */
	char *text;  /* owned: its instruction */
	struct digest key;
	bool cut_off;          /* cached: an earlier equal layer stands in for its own */
	struct digest nearest; /* the key of the step that it was compared with */
	int64_t at_ms;         /* when that one, or the cached one, was made */
	json_t *differences;   /* owned; differences.h. A parent's says which step it is. */
};

/* ERR_NOT_FOUND where the base is not in the store; ERR_INVALID for no such step. */
int why_step(const struct spec *spec, const struct bake_options *options, size_t step,
	     struct why *out, struct err *err) MUST_CHECK;
void why_done(struct why *why);

static inline void auto_why_release(struct why *slot)
{
	why_done(slot);
}
#define auto_why AUTO(why)
