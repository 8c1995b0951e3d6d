/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/warnings_priv.h"

#define WARNING_CODE STR("299") /* and the agent "-": the registry itself */

static bool warning_ends_word(char c)
{
	return c == ' ' || c == '\t' || c == ',' || c == '"';
}

static struct str warning_word(struct str *field)
{
	struct str word;

	while (field->len > 0 &&
	       (field->ptr[0] == ' ' || field->ptr[0] == '\t' || field->ptr[0] == ','))
		*field = str_skip(*field, 1);
	word = (struct str){field->ptr, 0};
	while (word.len < field->len && !warning_ends_word(word.ptr[word.len]))
		word.len++;
	*field = str_skip(*field, word.len);
	return word;
}

/* A quoted text without its quotes, and without what could move a terminal's cursor. */
static void warning_unquote(struct str *field, struct buf *out)
{
	struct err full;

	*field = str_skip(*field, 1);
	while (field->len > 0 && field->ptr[0] != '"') {
		char c;

		if (field->ptr[0] == '\\' && field->len > 1)
			*field = str_skip(*field, 1);
		c = field->ptr[0];
		if ((unsigned char)c < 0x20 || c == 0x7f)
			c = ' ';
		(void)!buf_add(out, (struct str){&c, 1}, &full); /* the beginning has to do */
		*field = str_skip(*field, 1);
	}
	if (field->len > 0)
		*field = str_skip(*field, 1);
}

bool warnings_next(struct str *field, struct buf *out)
{
	struct str code = STR("");
	struct str agent = STR("");

	while (field->len > 0) {
		struct str word = warning_word(field);

		if (word.len > 0) {
			code = agent;
			agent = word;
		}
		if (word.len > 0 || field->len == 0)
			continue;
		buf_clear(out);
		warning_unquote(field, out); /* or a date, whose words before it are none */
		if (str_equal(code, WARNING_CODE) && out->len > 0)
			return true;
		code = agent = STR("");
	}
	return false;
}

/* Whether it is new, and may be told. */
static bool warnings_note(struct warnings *warnings, struct str text)
{
	struct digest digest;
	bool fresh;

	digest_of(text, &digest);
	lock_take(&warnings->lock);
	fresh = warnings->told_count < WARNINGS_TOLD_MAX;
	for (size_t i = 0; i < warnings->told_count; i++)
		fresh = fresh && !digest_equal(&warnings->told[i], &digest);
	if (fresh)
		warnings->told[warnings->told_count++] = digest;
	lock_drop(&warnings->lock);
	return fresh;
}

void warnings_hear(struct warnings *warnings, const struct http_reply *reply)
{
	auto_buf struct buf text = BUF_INIT(WARNINGS_BYTES_MAX);
	struct str headers = buf_str(&reply->headers);
	size_t left = WARNINGS_BYTES_MAX;
	struct str field;

	while (warnings->fn && http_header_next(&headers, "Warning", &field)) {
		if (field.len > left)
			field.len = left;
		left -= field.len;
		while (warnings_next(&field, &text)) {
			if (warnings_note(warnings, buf_str(&text)))
				warnings->fn(warnings->ctx, buf_str(&text));
			buf_clear(&text);
		}
	}
}
