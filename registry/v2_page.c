/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/v2_page.h"

int v2_page_read(const struct v2_call *call, struct v2_page *out)
{
	struct v2_page page = {.max = V2_PAGE_MAX, .last = STR("")};
	struct str text;
	uint64_t n;

	if (v2_path_find(call->request, STR("n"), &text)) {
		if (!str_parse_number(text, &n)) {
			v2_refuse(call->response, 400, V2_UNSUPPORTED,
				  "n: expected a number of entries");
			return -1;
		}
		if (n < page.max)
			page.max = (size_t)n;
	}
	(void)v2_path_find(call->request, STR("last"), &page.last);
	*out = page;
	return 0;
}

int v2_page_escape(struct str text, struct buf *out, struct err *err)
{
	return http_add_escaped(out, text, "/:", err);
}

void v2_page_link(const struct v2_call *call, const struct v2_page *page, struct str last,
		  struct str query)
{
	auto_buf struct buf link = BUF_INIT(V2_PAGE_LINK_MAX);
	struct err full; /* names are short, and what else was asked fitted a request */

	if (buf_addf(&link, &full, "<" STR_FMT "?n=%zu&last=", STR_ARG(call->request->path),
		     page->max) < 0 ||
	    v2_page_escape(last, &link, &full) < 0 || buf_add(&link, query, &full) < 0 ||
	    buf_add(&link, STR(">; rel=\"next\""), &full) < 0)
		return;
	http_add_header(call->response, "Link", buf_str(&link));
}

int v2_page_add_name(const struct v2_call *call, struct v2_page_names *names, struct str name,
		     struct err *err)
{
	names->more = names->count == names->page.max;
	if (names->more)
		return 1;
	memcpy(names->last, name.ptr, name.len);
	names->last[name.len] = '\0';
	return buf_addf(&call->response->body, err, "%s\"%s\"", names->count++ > 0 ? "," : "",
			names->last);
}

void v2_page_end_names(const struct v2_call *call, const struct v2_page_names *names)
{
	http_add_header(call->response, "Content-Type", STR("application/json"));
	if (names->more && names->count > 0)
		v2_page_link(call, &names->page, str_of(names->last), STR(""));
}
