/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.c - a cursor is the hex of the last key that was given.
 */
#include "layers/page.h"

#include "layers/base/hex.h"

#include <inttypes.h>

struct page_reading {
	const struct page_source *source;
	size_t limit;
	json_t *items; /* owned */
	char last[META_KEY_MAX];
	size_t last_len;
};

int page_parse(const json_t *request, struct page *out, struct err *err)
{
	static const char expected[] = "1 to 500"; /* PAGE_LIMIT_MAX */
	int64_t limit = PAGE_LIMIT_DEFAULT;
	struct str cursor = STR("");

	if (json_get_int(request, "", "limit", &limit, err) < 0 ||
	    json_get_string(request, "", "cursor", &cursor, err) < 0)
		return -1;
	if (limit < 1 || limit > PAGE_LIMIT_MAX) {
		(void)err_wrong(err, expected, "expected %s, found %" PRId64, expected, limit);
		return err_at(err, "limit", NULL);
	}
	*out = (struct page){(size_t)limit, cursor};
	return 0;
}

/* 2 the page is full, and there is more. */
static int page_visit(void *ctx, struct str key, const json_t *record, struct err *err)
{
	struct page_reading *reading = ctx;
	AUTO(json) json_t *item = NULL;

	if (reading->source->item(reading->source->ctx, key, record, &item, err) < 0)
		return -1;
	if (!item)
		return 0;
	if (json_array_size(reading->items) == reading->limit)
		return 2;
	memcpy(reading->last, key.ptr, key.len);
	reading->last_len = key.len;
	if (json_array_append_new(reading->items, steal_ptr(&item)) < 0)
		abort();
	return 0;
}

/* The key that a cursor stands for; its bytes go to space. */
static int page_parse_cursor(const struct page *page, struct str prefix,
			     char space[static META_KEY_MAX], struct str *out, struct err *err)
{
	static const char expected[] = "the `next` of an earlier page";
	struct str key = {space, page->cursor.len / 2};

	if (page->cursor.len <= 2 * META_KEY_MAX && hex_decode(page->cursor, space) &&
	    (key.len == 0 || (key.len > prefix.len && str_starts(key, prefix)))) {
		*out = key;
		return 0;
	}
	(void)err_wrong(err, expected, "expected %s", expected);
	return err_at(err, "cursor", NULL);
}

int page_read(struct meta *meta, const struct page_source *source, const struct page *page,
	      json_t **out, struct err *err)
{
	AUTO(json) json_t *items = json_array();
	struct page_reading reading = {.source = source, .limit = page->limit, .items = items};
	char space[META_KEY_MAX];
	char next[2 * META_KEY_MAX + 1];
	struct str before;
	int more;

	if (page_parse_cursor(page, source->prefix, space, &before, err) < 0)
		return -1;
	more = meta_each_before(meta, source->table, source->prefix, before, page_visit, &reading,
				err);
	if (more < 0)
		return -1;
	*out = json_pack("{s:O, s:s?}", "items", items, "next",
			 more == 2 ? hex_encode(reading.last, reading.last_len, next) : NULL);
	if (!*out)
		abort();
	return 0;
}
