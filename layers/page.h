/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.h - lists, newest first, a page at a time.
 *
 * A list is a table, or its records below a prefix, read from the end. The
 * cursor says where a page ended; what is added meanwhile comes before it. So a
 * reader sees no record twice, and misses none that was there at the first
 * page.
 */
#pragma once

#include "layers/meta.h"

#define PAGE_LIMIT_DEFAULT 50
#define PAGE_LIMIT_MAX 500

struct page {
	size_t limit;
	struct str cursor; /* an earlier page's `next`, or "" */
};

/* Take `limit` and `cursor` from a request's members; ERR_INVALID names the wrong one (err.h). */
int page_parse(const json_t *request, struct page *out, struct err *err) MUST_CHECK;

/* How a record looks in the list, or NULL to leave it out; the caller owns *out. */
typedef int page_item_fn(void *ctx, struct str key, const json_t *record, json_t **out,
			 struct err *err);

struct page_source {
	const char *table;
	struct str prefix;
	page_item_fn *item;
	void *ctx;
};

/* {items: […], next: a cursor or null}. ERR_INVALID for a cursor that no such list gave. */
int page_read(struct meta *meta, const struct page_source *source, const struct page *page,
	      json_t **out, struct err *err) MUST_CHECK;
