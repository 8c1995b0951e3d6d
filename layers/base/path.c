/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/path.h"

#include <string.h>

bool path_next(struct str *rest, struct str *out)
{
	while (rest->len > 0) {
		const char *slash = memchr(rest->ptr, '/', rest->len);
		size_t n = slash ? (size_t)(slash - rest->ptr) : rest->len;
		struct str part = {rest->ptr, n};
		size_t skip = slash ? n + 1 : n;

		rest->ptr += skip;
		rest->len -= skip;
		if (part.len == 0 || str_equal(part, STR(".")))
			continue;
		*out = part;
		return true;
	}
	return false;
}

static int path_add_component(struct buf *path, struct str part, struct err *err)
{
	if (str_equal(part, STR(".."))) {
		const char *slash = path->len ? memrchr(path->ptr, '/', path->len) : NULL;

		path->len = slash ? (size_t)(slash - path->ptr) : 0;
		if (path->ptr)
			path->ptr[path->len] = '\0';
		return 0;
	}
	if (buf_add(path, STR("/"), err) < 0)
		return -1;
	return buf_add(path, part, err);
}

int path_join(struct str base, struct str name, struct buf *out, struct err *err)
{
	auto_buf struct buf path = BUF_INIT(PATH_TEXT_MAX);
	bool absolute = name.len > 0 && name.ptr[0] == '/';
	struct str part;

	while (!absolute && path_next(&base, &part)) {
		if (path_add_component(&path, part, err) < 0)
			return err_ctx(err, "path");
	}
	while (path_next(&name, &part)) {
		if (path_add_component(&path, part, err) < 0)
			return err_ctx(err, "path");
	}
	if (path.len == 0 && buf_add(&path, STR("/"), err) < 0)
		return -1;
	return buf_add(out, buf_str(&path), err);
}

struct str path_base(struct str path)
{
	const char *slash = path.len ? memrchr(path.ptr, '/', path.len) : NULL;
	size_t skip = slash ? (size_t)(slash - path.ptr) + 1 : 0;

	return str_skip(path, skip);
}

const char *path_show(struct str path, char text[static PATH_SHOWN_MAX])
{
	size_t n = path.len < PATH_SHOWN_MAX ? path.len : PATH_SHOWN_MAX - 1;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)path.ptr[i];

		text[i] = (char)(c < 0x20 || c == 0x7f ? '?' : c);
	}
	text[n] = '\0';
	return text;
}
