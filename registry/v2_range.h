/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v2_range.h - which part of a blob is asked for.
 *
 * 	bytes=0-499    the first 500        bytes=-500    the last 500, or all
 * 	bytes=500-     all but those
 *
 * What is no such range (several of them, other units, other text) is not
 * obeyed, as if it were not there, and neither is one of an empty blob. A range
 * that holds no byte of the blob is refused; one that ends before it begins is
 * held to be such a one, as other registries do.
 *
 * Format: RFC 9110, 14.1.2 and 14.2.
 */
#pragma once

#include "layers/base/buf.h"

struct v2_range {
	uint64_t first;
	uint64_t count; /* bytes */
};

/* 1 a part, 0 the whole (*out is that), -1 nothing: the answer is 416. field may be NULL. */
int v2_range_parse(const char *field, uint64_t size, struct v2_range *out);
