/* SPDX-License-Identifier: Apache-2.0 */
/* http_header.c - what the headers of an answer say. */
#include "registry/http_priv.h"

#include <strings.h>

bool http_header_next(struct str *rest, const char *name, struct str *out)
{
	const size_t name_len = strlen(name);

	struct str line;

	while (str_cut(rest, '\n', &line)) {
		if (line.len <= name_len || line.ptr[name_len] != ':' ||
		    strncasecmp(line.ptr, name, name_len) != 0)
			continue;
		*out = str_trim(str_skip(line, name_len + 1));
		return true;
	}
	return false;
}

struct str http_header(const struct http_reply *response, const char *name)
{
	struct str rest = buf_str(&response->headers);
	struct str value;

	return http_header_next(&rest, name, &value) ? value : STR("");
}

void http_reply_done(struct http_reply *response)
{
	buf_done(&response->headers);
	buf_done(&response->error_body);
}
