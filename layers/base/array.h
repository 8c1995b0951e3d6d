/* SPDX-License-Identifier: Apache-2.0 */
/* array.h - an array that grows by one; its ceiling is its owner's to keep. */
#pragma once

#include <stdlib.h>

/*
 * Room for one more element behind `count`, doubled when the count is 0 or a
 * power of two. NULL and 0 are the empty array; the caller owns what is returned.
 */
static inline void *array_grow(void *array, size_t count, size_t element_size)
{
	void *more = array;

	if ((count & (count - 1)) == 0)
		more = reallocarray(array, count ? 2 * count : 1, element_size);
	if (!more)
		abort();
	return more;
}
