/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack_pax.c - the target of a link, as it stands in the tar.
 *
 * In the C locale libarchive keeps a name that it cannot convert as it is, but
 * drops such a target of a hard link or symlink, and with it the fact that the
 * entry is a link. The headers that it has just read are still in memory, so
 * they are parsed again here.
 */
#include "layers/unpack_priv.h"

#define BLOCK ((size_t)512)
#define TYPE_AT ((size_t)156)
#define SIZE_AT ((size_t)124)

/* "LEN KEY=VALUE\n", taken off the front of body. */
static bool pax_next(struct str *body, struct str *key, struct str *value)
{
	size_t len = 0;
	size_t at = 0;
	const char *equal;

	while (at < body->len && body->ptr[at] >= '0' && body->ptr[at] <= '9' && len <= body->len)
		len = 10 * len + (size_t)(body->ptr[at++] - '0');
	if (at == body->len || body->ptr[at] != ' ' || len <= at + 1 || len > body->len)
		return false;
	equal = memchr(body->ptr + at, '=', len - at);
	if (!equal)
		return false;
	*key = (struct str){body->ptr + at + 1, (size_t)(equal - body->ptr) - at - 1};
	*value = (struct str){equal + 1, (size_t)(body->ptr + len - equal) - 2};
	body->ptr += len;
	body->len -= len;
	return true;
}

static void pax_find(struct str body, struct pax_link *out)
{
	struct str key;
	struct str value;

	while (pax_next(&body, &key, &value)) {
		if (str_equal(key, STR("linkpath")))
			out->target = value;
	}
}

static size_t header_size(const char *header)
{
	size_t size = 0;

	for (size_t i = 0; i < 11 && header[SIZE_AT + i] >= '0' && header[SIZE_AT + i] <= '7'; i++)
		size = 8 * size + (size_t)(header[SIZE_AT + i] - '0');
	return size;
}

void unpack_pax_find_link(struct str headers, struct pax_link *out)
{
	*out = (struct pax_link){0};
	while (headers.len >= BLOCK) {
		char type = headers.ptr[TYPE_AT];
		size_t size = header_size(headers.ptr);
		size_t whole = BLOCK + (size + BLOCK - 1) / BLOCK * BLOCK;

		if (type != 'x' && type != 'g' && type != 'L' && type != 'K') {
			out->type = type;
			return;
		}
		if (whole > headers.len)
			return;
		if (type == 'x')
			pax_find((struct str){headers.ptr + BLOCK, size}, out);
		headers.ptr += whole;
		headers.len -= whole;
	}
}
