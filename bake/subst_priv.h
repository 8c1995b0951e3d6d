/* SPDX-License-Identifier: Apache-2.0 */
/*
 * subst_priv.h - the forms of ${NAME} that take a pattern: # and ##, % and %%
 * cut off a match at the front or the end, / and // replace one.
 *
 * In a pattern `*` is any text and `?` any character; a backslash makes either,
 * or itself, an ordinary one, and goes from in front of } and /. Brackets have
 * no meaning. What is replaced is the longest match at the first place that has
 * one.
 */
#pragma once

#include "layers/base/buf.h"

#define SUBST_PATTERN_MAX \
	((size_t)4096) /* characters; matching takes its length for each of the value's */

enum subst_side { SUBST_FRONT, SUBST_BACK };

/* Append the value without its shortest or longest match on that side. */
int subst_trim(struct str value, struct str pattern, enum subst_side side, bool longest,
	       struct buf *out, struct err *err) MUST_CHECK;

/* Append the value with its first match, or all of them, replaced. */
int subst_replace(struct str value, struct str pattern, struct str replacement, bool all,
		  struct buf *out, struct err *err) MUST_CHECK;
