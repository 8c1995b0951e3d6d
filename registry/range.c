/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/range_priv.h"

/* The digits at the start of *text, which shrinks to what follows. */
static bool take_number(struct str *text, uint64_t *out)
{
	uint64_t number = 0;
	size_t n = 0;

	while (n < text->len && text->ptr[n] >= '0' && text->ptr[n] <= '9') {
		uint64_t digit = (uint64_t)(text->ptr[n] - '0');

		if (__builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, digit, &number))
			return false;
		n++;
	}
	if (n == 0)
		return false;
	*text = str_skip(*text, n);
	*out = number;
	return true;
}

static bool take_char(struct str *text, char c)
{
	if (text->len == 0 || text->ptr[0] != c)
		return false;
	*text = str_skip(*text, 1);
	return true;
}

bool range_parse_number(struct str text, uint64_t *out)
{
	uint64_t number;

	if (!take_number(&text, &number) || text.len > 0)
		return false;
	*out = number;
	return true;
}

int range_parse(struct str text, struct range *out, struct err *err)
{
	struct range range = {.size = RANGE_SIZE_UNKNOWN};
	struct str rest = text;

	if (!str_starts(rest, STR("bytes ")))
		return err_set(err, ERR_REMOTE, "bad Content-Range: " STR_FMT, STR_ARG(text));
	rest = str_skip(rest, 6);
	if (!take_number(&rest, &range.first) || !take_char(&rest, '-') ||
	    !take_number(&rest, &range.last) || !take_char(&rest, '/') ||
	    (!take_char(&rest, '*') && !take_number(&rest, &range.size)) || rest.len > 0 ||
	    range.first > range.last || range.last >= range.size)
		return err_set(err, ERR_REMOTE, "bad Content-Range: " STR_FMT, STR_ARG(text));
	*out = range;
	return 0;
}

bool range_parse_sent(struct str text, uint64_t *out_last)
{
	struct str rest = text;
	uint64_t first;
	uint64_t last;

	if (str_starts(rest, STR("bytes=")) || str_starts(rest, STR("bytes ")))
		rest = str_skip(rest, 6);
	if (!take_number(&rest, &first) || !take_char(&rest, '-') || !take_number(&rest, &last) ||
	    rest.len > 0 || first != 0)
		return false;
	*out_last = last;
	return true;
}
