/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/buf.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void buf_wipe(const struct buf *buf)
{
	if (buf->wiped && buf->ptr)
		explicit_bzero(buf->ptr, buf->cap);
}

/* realloc() would leave a copy behind where it moves. */
static char *buf_move(const struct buf *buf, size_t cap)
{
	char *ptr = malloc(cap);

	if (ptr && buf->ptr)
		memcpy(ptr, buf->ptr, buf->len + 1);
	buf_wipe(buf);
	free(buf->ptr);
	return ptr;
}

/* Make room for extra bytes and the NUL behind them. */
static int buf_grow(struct buf *buf, size_t extra, struct err *err)
{
	size_t need;
	size_t cap = buf->cap ? buf->cap : 64;
	char *ptr;

	if (__builtin_add_overflow(buf->len, extra, &need) || need > buf->max)
		return err_set(err, ERR_LIMIT, "more than %zu bytes", buf->max);
	while (cap <= need)
		cap *= 2;
	if (cap == buf->cap)
		return 0;
	ptr = buf->wiped ? buf_move(buf, cap) : realloc(buf->ptr, cap);
	if (!ptr)
		abort();
	buf->ptr = ptr;
	buf->cap = cap;
	return 0;
}

int buf_add(struct buf *buf, struct str bytes, struct err *err)
{
	assert(buf->max > 0);

	if (buf_grow(buf, bytes.len, err) < 0)
		return -1;
	if (bytes.len > 0)
		memcpy(buf->ptr + buf->len, bytes.ptr, bytes.len);
	buf->len += bytes.len;
	buf->ptr[buf->len] = '\0';
	return 0;
}

int buf_addf(struct buf *buf, struct err *err, const char *fmt, ...)
{
	va_list ap;
	int need;

	va_start(ap, fmt);
	need = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (need < 0 || buf_grow(buf, (size_t)need, err) < 0)
		return -1;
	va_start(ap, fmt);
	(void)vsnprintf(buf->ptr + buf->len, (size_t)need + 1, fmt, ap);
	va_end(ap);
	buf->len += (size_t)need;
	return 0;
}

void buf_clear(struct buf *buf)
{
	buf_wipe(buf);
	buf->len = 0;
	if (buf->ptr)
		buf->ptr[0] = '\0';
}

void buf_done(struct buf *buf)
{
	buf_wipe(buf);
	free(buf->ptr);
	*buf = (struct buf){.max = buf->max, .wiped = buf->wiped};
}

bool str_cut(struct str *rest, char separator, struct str *out)
{
	const char *end;

	if (!rest->ptr)
		return false;
	end = rest->len ? memchr(rest->ptr, separator, rest->len) : NULL;
	*out = (struct str){rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};
	*rest = end ? (struct str){end + 1, rest->len - out->len - 1} : (struct str){NULL, 0};
	return true;
}

struct str str_trim(struct str text)
{
	while (text.len > 0 && isblank((unsigned char)text.ptr[0]))
		text = str_skip(text, 1);
	while (text.len > 0 && isblank((unsigned char)text.ptr[text.len - 1]))
		text.len--;
	return text;
}

char *str_dup(struct str text)
{
	char *copy = strndup(text.ptr, text.len);

	if (!copy)
		abort();
	return copy;
}

bool str_take_char(struct str *text, char wanted)
{
	if (text->len == 0 || text->ptr[0] != wanted)
		return false;
	*text = str_skip(*text, 1);
	return true;
}

bool str_take_number(struct str *text, uint64_t *out)
{
	uint64_t value = 0;
	size_t digits = 0;

	while (digits < text->len && text->ptr[digits] >= '0' && text->ptr[digits] <= '9') {
		uint64_t digit = (uint64_t)(text->ptr[digits++] - '0');

		value = value > (UINT64_MAX - digit) / 10 ? UINT64_MAX : value * 10 + digit;
	}
	if (digits == 0)
		return false;
	*text = str_skip(*text, digits);
	*out = value;
	return true;
}

bool str_parse_number(struct str text, uint64_t *out)
{
	uint64_t number;

	if (!str_take_number(&text, &number) || text.len > 0)
		return false;
	*out = number;
	return true;
}
