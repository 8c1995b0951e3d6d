/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/csv_priv.h"

static int csv_plain(struct str text, size_t *at, struct buf *out, struct err *err)
{
	size_t start = *at;

	while (*at < text.len && text.ptr[*at] != ',') {
		if (text.ptr[*at] == '"')
			return err_set(err, ERR_INVALID,
				       "a quote in the middle of a field: put the whole field "
				       "between quotes");
		(*at)++;
	}
	return buf_add(out, (struct str){text.ptr + start, *at - start}, err);
}

/* Behind the opening quote. */
static int csv_quoted(struct str text, size_t *at, struct buf *out, struct err *err)
{
	for (; *at < text.len; (*at)++) {
		bool quote = text.ptr[*at] == '"';
		bool twice = quote && *at + 1 < text.len && text.ptr[*at + 1] == '"';

		if (quote && !twice)
			break;
		if (buf_add(out, (struct str){text.ptr + *at, 1}, err) < 0)
			return -1;
		*at += twice;
	}
	if (*at == text.len)
		return err_set(err, ERR_INVALID, "the quote \" is never closed");
	(*at)++;
	if (*at < text.len && text.ptr[*at] != ',')
		return err_set(err, ERR_INVALID, "expected a comma behind the closing quote");
	return 0;
}

int csv_next(struct str *rest, struct buf *out, bool *out_more, struct err *err)
{
	struct str text = *rest;
	bool quoted = text.len > 0 && text.ptr[0] == '"';
	size_t at = quoted;

	buf_clear(out);
	if (quoted ? csv_quoted(text, &at, out, err) < 0 : csv_plain(text, &at, out, err) < 0)
		return -1;
	*out_more = at < text.len;
	at += *out_more;
	*rest = str_skip(text, at);
	return 0;
}
