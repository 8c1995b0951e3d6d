/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/grammar.h"

static bool grammar_is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool grammar_is_word(char c)
{
	return grammar_is_alnum(c) || (c >= 'A' && c <= 'Z') || c == '_';
}

/* What stands between two runs of letters and digits: one ., _ or __, or dashes. 0 for none. */
static size_t grammar_separator(struct str text)
{
	size_t n = 0;

	if (text.ptr[0] == '.')
		return 1;
	if (text.ptr[0] == '_')
		return text.len > 1 && text.ptr[1] == '_' ? 2 : 1;
	while (n < text.len && text.ptr[n] == '-')
		n++;
	return n;
}

static bool grammar_is_part(struct str text)
{
	while (true) {
		size_t n = 0;

		while (n < text.len && grammar_is_alnum(text.ptr[n]))
			n++;
		if (n == 0 || n == text.len)
			return n > 0;
		text = str_skip(text, n);
		n = grammar_separator(text);
		if (n == 0)
			return false;
		text = str_skip(text, n);
	}
}

bool grammar_is_name(struct str text)
{
	struct str rest = text;
	struct str part;

	if (text.len == 0 || text.len > GRAMMAR_NAME_MAX)
		return false;
	while (str_cut(&rest, '/', &part)) {
		if (!grammar_is_part(part))
			return false;
	}
	return true;
}

bool grammar_is_tag(struct str text)
{
	if (text.len == 0 || text.len > GRAMMAR_TAG_MAX || !grammar_is_word(text.ptr[0]))
		return false;
	for (size_t i = 1; i < text.len; i++) {
		if (!grammar_is_word(text.ptr[i]) && text.ptr[i] != '.' && text.ptr[i] != '-')
			return false;
	}
	return true;
}
