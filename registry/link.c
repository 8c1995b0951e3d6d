/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/link_priv.h"

#include <strings.h>

static void skip_any(struct str *text, const char *of)
{
	while (text->len > 0 && text->ptr[0] != '\0' && strchr(of, text->ptr[0]))
		*text = str_skip(*text, 1);
}

/* What comes before one of these characters. */
static struct str take_until(struct str *text, const char *ends)
{
	struct str taken = {text->ptr, 0};

	while (taken.len < text->len &&
	       (taken.ptr[taken.len] == '\0' || !strchr(ends, taken.ptr[taken.len])))
		taken.len++;
	*text = str_skip(*text, taken.len);
	return taken;
}

/* Quoted, it is several words; what is escaped in it is no relation's name. */
static struct str take_value(struct str *text)
{
	struct str value;

	if (text->len == 0 || text->ptr[0] != '"')
		return take_until(text, " \t;,");
	*text = str_skip(*text, 1);
	value = take_until(text, "\"");
	skip_any(text, "\"");
	return value;
}

static bool has_word(struct str words, struct str word)
{
	while (words.len > 0) {
		struct str one = take_until(&words, " \t");

		if (one.len == word.len && strncasecmp(one.ptr, word.ptr, word.len) == 0)
			return true;
		skip_any(&words, " \t");
	}
	return false;
}

/* The parameters of one link, to the comma behind them: whether it has this relation. */
static bool take_relation(struct str *text, struct str relation)
{
	bool found = false;

	skip_any(text, " \t;");
	while (text->len > 0 && text->ptr[0] != ',') {
		struct str name = take_until(text, "=;, \t");

		skip_any(text, " \t");
		if (text->len > 0 && text->ptr[0] == '=') {
			struct str value;

			*text = str_skip(*text, 1);
			skip_any(text, " \t");
			value = take_value(text);
			found = found || (name.len == 3 && strncasecmp(name.ptr, "rel", 3) == 0 &&
					  has_word(value, relation));
		}
		skip_any(text, " \t;");
	}
	return found;
}

struct str link_find(struct str field, struct str relation)
{
	for (;;) {
		struct str target;

		skip_any(&field, " \t,");
		if (field.len == 0 || field.ptr[0] != '<')
			return STR("");
		field = str_skip(field, 1);
		target = take_until(&field, ">");
		if (field.len == 0)
			return STR(""); /* it never ends */
		field = str_skip(field, 1);
		if (take_relation(&field, relation))
			return target;
	}
}
