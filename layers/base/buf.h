/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf.h - bytes we own (struct buf) and bytes we only look at (struct str).
 *
 * A str is a pointer and a length. It never owns, is passed by value, may hold
 * NUL bytes, and is valid only as long as what it points into.
 *
 * A buf grows, and always has a ceiling: whoever creates one says how much a
 * peer may make us remember. Reaching the ceiling is ERR_LIMIT.
 *
 * Invariants: len < cap when ptr is set, and ptr[len] is always NUL, so that
 * buf.ptr can be given to any C API.
 */
#pragma once

#include "layers/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
	const char *ptr;
	size_t len;
};

#define STR(literal) ((struct str){"" literal, sizeof(literal) - 1})
#define STR_FMT "%.*s"
#define STR_ARG(s) (int)(s).len, (s).ptr

struct buf {
	char *ptr;
	size_t len;
	size_t cap;
	size_t max;
	bool wiped; /* zeroed before its memory is given back */
};

#define BUF_INIT(ceiling) ((struct buf){.max = (ceiling)})

/* For what holds a secret (secret.h) on its way. */
#define BUF_WIPED(ceiling) ((struct buf){.max = (ceiling), .wiped = true})

/* Append; the buf is unchanged on failure. */
int buf_add(struct buf *buf, struct str bytes, struct err *err) MUST_CHECK;

/* Append formatted text; the buf is unchanged on failure. */
int buf_addf(struct buf *buf, struct err *err, const char *fmt, ...) PRINTF(3, 4) MUST_CHECK;

/* Forget the content and keep the memory; a wiped buf is zeroed at once. */
void buf_clear(struct buf *buf);

/* Release the bytes; the buf is empty and usable again. */
void buf_done(struct buf *buf);

/* The bytes as a view, valid until the next call that takes the buf. */
static inline struct str buf_str(const struct buf *buf)
{
	return (struct str){buf->ptr ? buf->ptr : "", buf->len};
}

/* The view of a NUL-terminated string. */
static inline struct str str_of(const char *text)
{
	return (struct str){text, strlen(text)};
}

static inline bool str_equal(struct str a, struct str b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* Whether there are bytes, and all of them are 0. */
static inline bool str_is_zero(struct str bytes)
{
	return bytes.len > 0 && bytes.ptr[0] == '\0' &&
	       memcmp(bytes.ptr, bytes.ptr + 1, bytes.len - 1) == 0;
}

static inline bool str_starts(struct str text, struct str prefix)
{
	return text.len >= prefix.len && memcmp(text.ptr, prefix.ptr, prefix.len) == 0;
}

/*
 * Take what is before the first separator (which goes too), or all that is
 * left. False once everything was taken; an empty text has one empty piece.
 */
bool str_cut(struct str *rest, char separator, struct str *out);

/* What is behind the first n bytes, which are there. */
static inline struct str str_skip(struct str text, size_t n)
{
	return (struct str){text.ptr + n, text.len - n};
}

/* Without the spaces and tabs around it. */
struct str str_trim(struct str text);

/* A copy with a NUL behind it, the caller's to free; it ends at a NUL of the text. */
char *str_dup(struct str text);

/* Take this byte from the front. False when it is not there. */
bool str_take_char(struct str *text, char wanted);

/* Take decimal digits from the front. False when there are none; UINT64_MAX when too many. */
bool str_take_number(struct str *text, uint64_t *out);

/* The same of a text that is nothing else. */
bool str_parse_number(struct str text, uint64_t *out);

static inline void auto_buf_release(struct buf *slot)
{
	buf_done(slot);
}
#define auto_buf AUTO(buf)
