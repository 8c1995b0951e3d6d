/* SPDX-License-Identifier: Apache-2.0 */
/*
 * array.h - an array that grows by one, up to a ceiling.
 *
 * NULL and 0 are the empty array; its owner frees it. Room doubles whenever the
 * count is 0 or a power of two, so the capacity need not be kept.
 */
#pragma once

#include "layers/base/err.h"

#include <stdlib.h>
#include <string.h>

/* Room for one more element behind `count`; the caller has checked the ceiling. */
static inline void *array_grow(void *array, size_t count, size_t element_size)
{
	void *more = array;

	if ((count & (count - 1)) == 0)
		more = reallocarray(array, count ? 2 * count : 1, element_size);
	if (!more)
		abort();
	return more;
}

/*
 * The same for the array whose pointer lies at `slot`; ERR_LIMIT "more than
 * MAX WHAT" where it has max elements already.
 */
static inline int array_make_room(void *slot, size_t element_size, size_t count, size_t max,
				  const char *what, struct err *err)
{
	void *array;

	if (count >= max)
		return err_set(err, ERR_LIMIT, "more than %zu %s", max, what);
	memcpy(&array, slot, sizeof(array));
	array = array_grow(array, count, element_size);
	memcpy(slot, &array, sizeof(array));
	return 0;
}
