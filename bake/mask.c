/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/mask.h"

#include "layers/base/array.h"

#define MASK_SHOWN STR("***")

static void mask_add_line(struct mask *mask, struct str line)
{
	if (line.len > 0 && line.ptr[line.len - 1] == '\r')
		line.len--;
	if (line.len < MASK_LINE_MIN || line.len > MASK_LINE_MAX)
		return;
	mask->lines = array_grow(mask->lines, mask->count, sizeof(*mask->lines));
	mask->lines[mask->count++] = line;
}

void mask_add(struct mask *mask, struct str secret)
{
	while (secret.len > 0) {
		const char *end = memchr(secret.ptr, '\n', secret.len);
		size_t len = end ? (size_t)(end - secret.ptr) : secret.len;

		mask_add_line(mask, (struct str){secret.ptr, len});
		len += end != NULL;
		secret = (struct str){secret.ptr + len, secret.len - len};
	}
}

/* The longest secret that the text begins with, or may begin with (*out_more). */
static size_t mask_match(const struct mask *mask, struct str text, bool *out_more)
{
	size_t longest = 0;

	*out_more = false;
	for (size_t i = 0; i < mask->count; i++) {
		struct str line = mask->lines[i];
		size_t n = line.len < text.len ? line.len : text.len;

		if (*line.ptr != *text.ptr || memcmp(line.ptr, text.ptr, n) != 0)
			continue;
		if (n < line.len)
			*out_more = true;
		else if (n > longest)
			longest = n;
	}
	return longest;
}

static int mask_pass(const char *from, const char *to, struct sink *out, struct err *err)
{
	return to == from ? 0 : out->write(out, (struct str){from, (size_t)(to - from)}, err);
}

/* Pass on what is sure; *out_used bytes of the text are done with. */
static int mask_scan(const struct mask *mask, struct str text, bool ends, struct sink *out,
		     size_t *out_used, struct err *err)
{
	const char *from = text.ptr;
	const char *at = text.ptr;
	const char *end = text.ptr + text.len;

	while (at < end) {
		bool more;
		size_t n = mask_match(mask, (struct str){at, (size_t)(end - at)}, &more);

		if (more && !ends)
			break;
		if (n > 0 &&
		    (mask_pass(from, at, out, err) < 0 || out->write(out, MASK_SHOWN, err) < 0))
			return -1;
		at += n > 0 ? n : 1;
		if (n > 0)
			from = at;
	}
	*out_used = (size_t)(at - text.ptr);
	return mask_pass(from, at, out, err);
}

static int mask_take(struct mask *mask, bool ends, struct sink *out, struct err *err)
{
	size_t used;

	if (mask_scan(mask, buf_str(&mask->held), ends, out, &used, err) < 0)
		return -1;
	if (used > 0 && mask->held.len > 0)
		memmove(mask->held.ptr, mask->held.ptr + used, mask->held.len - used);
	mask->held.len -= used;
	if (mask->held.ptr)
		mask->held.ptr[mask->held.len] = '\0';
	return 0;
}

int mask_write(struct mask *mask, struct str bytes, struct sink *out, struct err *err)
{
	if (mask->count == 0)
		return out->write(out, bytes, err);
	if (buf_add(&mask->held, bytes, err) < 0)
		return -1;
	return mask_take(mask, false, out, err);
}

int mask_finish(struct mask *mask, struct sink *out, struct err *err)
{
	return mask->count == 0 ? 0 : mask_take(mask, true, out, err);
}

void mask_done(struct mask *mask)
{
	free(mask->lines);
	mask->lines = NULL;
	mask->count = 0;
	buf_done(&mask->held);
}
