/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/range_priv.h"

/* More than any blob has is no number of bytes. */
static bool range_take_number(struct str *text, uint64_t *out)
{
	return str_take_number(text, out) && *out < RANGE_SIZE_UNKNOWN;
}

bool range_parse_number(struct str text, uint64_t *out)
{
	uint64_t number;

	if (!str_parse_number(text, &number) || number >= RANGE_SIZE_UNKNOWN)
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
	if (!range_take_number(&rest, &range.first) || !str_take_char(&rest, '-') ||
	    !range_take_number(&rest, &range.last) || !str_take_char(&rest, '/') ||
	    (!str_take_char(&rest, '*') && !range_take_number(&rest, &range.size)) ||
	    rest.len > 0 || range.first > range.last || range.last >= range.size)
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
	if (!range_take_number(&rest, &first) || !str_take_char(&rest, '-') ||
	    !range_take_number(&rest, &last) || rest.len > 0 || first != 0)
		return false;
	*out_last = last;
	return true;
}
