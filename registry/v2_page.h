/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v2_page.h - a list in pages: ?n= and ?last= of a request, and the Link to the
 * next.
 *
 * Limits: V2_PAGE_MAX entries a page, however many are asked for.
 */
#pragma once

#include "registry/grammar.h"
#include "registry/v2.h"

#define V2_PAGE_MAX ((size_t)10000)
#define V2_PAGE_LINK_MAX ((size_t)8192) /* of a header */

struct v2_page {
	size_t max;      /* entries of it; may be 0 */
	struct str last; /* of the page before; "" for the first */
};

/* -1: the response refuses it. */
int v2_page_read(const struct v2_call *call, struct v2_page *out) MUST_CHECK;

/* Names that are written to the response's body, a page of them. */
struct v2_page_names {
	struct v2_page page;
	size_t count;
	char last[GRAMMAR_NAME_MAX + 1]; /* that is listed */
	bool more;
};

/*
 * Add one to the list: 1 where it is the next page's, 0, -1. No name of either
 * grammar (grammar.h) needs an escape.
 */
int v2_page_add_name(const struct v2_call *call, struct v2_page_names *names, struct str name,
		     struct err *err) MUST_CHECK;

/* The body is whole: say what it is, and where the next page is. */
void v2_page_end_names(const struct v2_call *call, const struct v2_page_names *names);

/* There is more behind `last`. query is what else was asked for, "" or "&a=b". */
void v2_page_link(const struct v2_call *call, const struct v2_page *page, struct str last,
		  struct str query);

/* A query's value, as it is written in a URL. */
int v2_page_escape(struct str text, struct buf *out, struct err *err) MUST_CHECK;
