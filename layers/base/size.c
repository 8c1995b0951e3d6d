/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/size.h"

#include <ctype.h>

/* Take the letter, in either case. */
static bool size_take(struct str *text, char lower)
{
	if (text->len == 0 || tolower((unsigned char)text->ptr[0]) != lower)
		return false;
	*text = str_skip(*text, 1);
	return true;
}

/* Take "M" or "Mi" and multiply the number by it. False where that is too much. */
static bool size_scale(struct str *text, uint64_t kilo, uint64_t *number)
{
	static const char units[] = "kmgtp";

	for (size_t i = 0; i < sizeof(units) - 1; i++) {
		if (!size_take(text, units[i]))
			continue;
		if (size_take(text, 'i'))
			kilo = SIZE_MEMORY;
		for (size_t power = 0; power <= i; power++) {
			if (__builtin_mul_overflow(*number, kilo, number))
				return false;
		}
		break;
	}
	return true;
}

int size_parse(struct str text, enum size_kilo kilo, uint64_t *out, struct err *err)
{
	struct str rest = text;
	uint64_t number;

	if (str_take_number(&rest, &number) && number < UINT64_MAX &&
	    size_scale(&rest, kilo, &number)) {
		(void)size_take(&rest, 'b');
		if (rest.len == 0) {
			*out = number;
			return 0;
		}
	}
	return err_set(err, ERR_INVALID, "expected a number of bytes, as in 500M or 20Gi");
}
