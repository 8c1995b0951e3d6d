/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/lines_priv.h"

#include <ctype.h>

struct lines {
	struct buf *out;
	size_t number; /* of the physical line, from 1 */
	size_t first;  /* the one in which the instruction begins */
	bool started;
	bool open;     /* the line before ended in a backslash */
	bool past;     /* no directive can come any more */
	unsigned said; /* which of the directives came */
	struct lines_seen seen;
};

/* Cut the next physical line off *rest, without its end. */
static struct str lines_next(struct str *rest)
{
	const char *end = memchr(rest->ptr, '\n', rest->len);
	size_t n = end ? (size_t)(end - rest->ptr) : rest->len;
	struct str line = {rest->ptr, n};

	rest->ptr += end ? n + 1 : n;
	rest->len -= end ? n + 1 : n;
	if (line.len > 0 && line.ptr[line.len - 1] == '\r')
		line.len--;
	return line;
}

static int lines_check_bytes(struct str line, size_t number, struct err *err)
{
	for (size_t i = 0; i < line.len; i++) {
		unsigned char c = (unsigned char)line.ptr[i];

		if ((c >= ' ' && c != 0x7f) || c == '\t')
			continue;
		return err_set(err, ERR_REFUSED,
			       "line %zu holds the control byte 0x%02x; tabs and line ends are "
			       "the only ones allowed",
			       number, c);
	}
	return 0;
}

/* Whether the line goes on; the escape and what follows it are cut off. */
static bool lines_continues(struct str *line, char escape)
{
	struct str text = *line;

	while (text.len > 0 && isblank((unsigned char)text.ptr[text.len - 1]))
		text.len--;
	if (text.len == 0 || text.ptr[text.len - 1] != escape)
		return false;
	if (text.len > 1 && text.ptr[text.len - 2] == escape)
		return false;
	*line = (struct str){text.ptr, text.len - 1};
	return true;
}

static size_t lines_key_length(struct str text)
{
	size_t n = 0;

	while (n < text.len && isalnum((unsigned char)text.ptr[n]))
		n++;
	return n > 0 && isalpha((unsigned char)text.ptr[0]) ? n : 0;
}

/* A comment's "key = value", the key a word; false for any other line. */
static bool lines_is_directive(struct str line, struct str *out_key, struct str *out_value)
{
	struct str rest;

	if (!str_starts(line, STR("#")))
		return false;
	rest = str_trim(str_skip(line, 1));
	*out_key = (struct str){rest.ptr, lines_key_length(rest)};
	rest = str_trim(str_skip(rest, out_key->len));
	if (out_key->len == 0 || !str_starts(rest, STR("=")))
		return false;
	*out_value = str_trim(str_skip(rest, 1));
	return true;
}

static int lines_set_escape(struct lines *lines, struct str value, struct err *err)
{
	if (!str_equal(value, STR("\\")) && !str_equal(value, STR("`")))
		return err_set(err, ERR_REFUSED,
			       "line %zu: # escape=" STR_FMT ": only \\ or ` escapes",
			       lines->number, STR_ARG(value));
	lines->seen.escape = value.ptr[0];
	return 0;
}

/* In front of all else a comment may say how the step is to be read. */
static int lines_check_directive(struct lines *lines, struct str line, struct err *err)
{
	static const char *const known[] = {"escape", "syntax", "check"};
	struct str key;
	struct str value;

	lines->past = lines->past || !lines_is_directive(line, &key, &value);
	for (size_t i = 0; !lines->past && i < sizeof(known) / sizeof(known[0]); i++) {
		if (key.len != strlen(known[i]) || strncasecmp(key.ptr, known[i], key.len) != 0)
			continue;
		if (lines->said & 1U << i)
			return err_set(err, ERR_REFUSED, "line %zu: # %s= is given twice",
				       lines->number, known[i]);
		lines->said |= 1U << i;
		return i == 0 ? lines_set_escape(lines, value, err) : 0;
	}
	return 0;
}

static int lines_refuse_second(const struct lines *lines, struct err *err)
{
	bool heredoc = lines->out->len > 1 && memmem(lines->out->ptr, lines->out->len, "<<", 2);

	return err_set(
		err, ERR_REFUSED,
		"line %zu: a step is one instruction, and it ended before this line; %s",
		lines->number,
		heredoc ? "heredocs are not supported yet, continue lines with \\"
			: "end a line with \\ to continue it, or make this a step of its own");
}

static int lines_take(struct lines *lines, struct str line, struct err *err)
{
	struct str visible = str_trim(line);

	if (lines_check_directive(lines, visible, err) < 0)
		return -1;
	lines->seen.gap = lines->seen.gap || (visible.len == 0 && lines->open);
	if (visible.len == 0 || visible.ptr[0] == '#')
		return 0;
	if (lines->started && !lines->open)
		return lines_refuse_second(lines, err);
	if (!lines->started) {
		line = visible;
		lines->first = lines->number;
	}
	lines->started = true;
	lines->open = lines_continues(&line, lines->seen.escape);
	return buf_add(lines->out, line, err);
}

static int lines_take_all(struct lines *lines, struct str text, struct err *err)
{
	if (str_starts(text, STR("\xef\xbb\xbf")))
		text = str_skip(text, 3);
	while (text.len > 0) {
		struct str line = lines_next(&text);

		lines->number++;
		if (lines_check_bytes(line, lines->number, err) < 0 ||
		    lines_take(lines, line, err) < 0)
			return -1;
	}
	return 0;
}

int lines_join(struct str text, struct buf *out, struct lines_seen *seen, struct err *err)
{
	auto_buf struct buf joined = BUF_INIT(text.len + 1);
	struct lines lines = {.out = &joined, .seen = {.escape = '\\'}};

	if (lines_take_all(&lines, text, err) < 0)
		return -1;
	*seen = lines.seen;
	return buf_add(out, str_trim(buf_str(&joined)), err);
}

size_t lines_blame(struct str text)
{
	auto_buf struct buf joined = BUF_INIT(text.len + 1);
	struct lines lines = {.out = &joined, .first = 1, .seen = {.escape = '\\'}};
	struct err ignored;

	return lines_take_all(&lines, text, &ignored) < 0 ? lines.number : lines.first;
}
