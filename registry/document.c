/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/document.h"

#include "layers/base/json.h"

/* Every prefix with so many digits behind it. */
static int document_scan_for(struct str text, struct str prefix, size_t digits, reach_add_fn *add,
			     void *ctx, struct err *err)
{
	const char *end = text.ptr + text.len;
	const char *at = text.ptr;

	while ((at = memmem(at, (size_t)(end - at), prefix.ptr, prefix.len))) {
		struct digest digest;
		struct err none;
		struct str word = {at, prefix.len + digits};

		at += prefix.len;
		if ((size_t)(end - word.ptr) < word.len || digest_parse(word, &digest, &none) < 0)
			continue;
		if (add(ctx, &digest, err) < 0)
			return -1;
	}
	return 0;
}

static int document_scan(struct str text, reach_add_fn *add, void *ctx, struct err *err)
{
	if (document_scan_for(text, STR("sha256:"), 64, add, ctx, err) < 0)
		return -1;
	return document_scan_for(text, STR("sha512:"), 128, add, ctx, err);
}

static int document_walk(const json_t *value, reach_add_fn *add, void *ctx, struct err *err)
{
	const char *key;
	json_t *member;
	size_t at;

	if (json_is_string(value))
		return document_scan(json_str(value), add, ctx, err);
	json_array_foreach(value, at, member)
	{
		if (document_walk(member, add, ctx, err) < 0)
			return -1;
	}
	json_object_foreach((json_t *)drop_const(value), key, member)
	{
		if (document_walk(member, add, ctx, err) < 0)
			return -1;
	}
	return 0;
}

int document_names(struct str text, reach_add_fn *add, void *ctx, struct err *err)
{
	AUTO(json) json_t *document = NULL;
	struct err none;

	/* Escapes may hide a prefix, so a text with any is parsed as JSON. */
	if (text.len > 0 && memchr(text.ptr, '\\', text.len) &&
	    json_parse(text, REACH_DOCUMENT_MAX, &document, &none) == 0)
		return document_walk(document, add, ctx, err);
	return document_scan(text, add, ctx, err);
}
