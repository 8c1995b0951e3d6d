/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/v2_range.h"

#include <strings.h>

/* What is behind "bytes=". */
static bool v2_range_cut_unit(struct str *text)
{
	const struct str unit = STR("bytes=");

	if (text->len < unit.len || strncasecmp(text->ptr, unit.ptr, unit.len) != 0)
		return false;
	*text = str_trim(str_skip(*text, unit.len));
	return true;
}

/* "500-1499", "500-" or "-500"; a number that is not there is UINT64_MAX. */
static bool v2_range_read(struct str text, uint64_t *out_first, uint64_t *out_last)
{
	bool has_first = str_take_number(&text, out_first);
	bool has_last;

	if (!str_take_char(&text, '-'))
		return false;
	has_last = str_take_number(&text, out_last);
	if (!has_first)
		*out_first = UINT64_MAX;
	if (!has_last)
		*out_last = UINT64_MAX;
	return text.len == 0 && (has_first || has_last);
}

static struct v2_range v2_range_last(uint64_t count, uint64_t size)
{
	return (struct v2_range){count < size ? size - count : 0, count < size ? count : size};
}

int v2_range_parse(const char *field, uint64_t size, struct v2_range *out)
{
	struct str text = str_trim(str_of(field ? field : ""));
	uint64_t first;
	uint64_t last;

	*out = (struct v2_range){0, size};
	if (size == 0 || !v2_range_cut_unit(&text) || !v2_range_read(text, &first, &last))
		return 0;
	if (*text.ptr == '-') {
		*out = v2_range_last(last, size);
		return out->count > 0 ? 1 : -1;
	}
	if (first >= size || last < first)
		return -1;
	if (last >= size)
		last = size - 1;
	*out = (struct v2_range){first, last - first + 1};
	return 1;
}
