/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/words_priv.h"

#include "layers/base/array.h"

#include <ctype.h>

int words_add(struct words *words, struct str word, struct err *err)
{
	char *copy;

	if (words->count == INSTRUCTION_WORDS_MAX)
		return err_set(err, ERR_REFUSED, "more than %d words", INSTRUCTION_WORDS_MAX);
	copy = malloc(word.len + 1);
	if (!copy)
		abort();
	memcpy(copy, word.ptr, word.len);
	copy[word.len] = '\0';
	words->at = array_grow(words->at, words->count, sizeof(*words->at));
	words->at[words->count++] = copy;
	return 0;
}

void words_done(struct words *words)
{
	for (size_t i = 0; i < words->count; i++)
		free(words->at[i]);
	free(words->at);
	*words = (struct words){0};
}

static size_t words_skip_blanks(struct str text, size_t at)
{
	while (at < text.len && words_blank(text.ptr[at]))
		at++;
	return at;
}

int words_split(struct str text, struct words *out, struct err *err)
{
	size_t at = words_skip_blanks(text, 0);

	while (at < text.len) {
		size_t start = at;

		while (at < text.len && !words_blank(text.ptr[at]))
			at++;
		if (words_add(out, (struct str){text.ptr + start, at - start}, err) < 0)
			return -1;
		at = words_skip_blanks(text, at);
	}
	return 0;
}

/* Behind a quoted part that starts at `at`; at the end for one that never closes. */
static size_t words_skip_quote(struct str text, char escape, size_t at)
{
	char quote = text.ptr[at++];

	while (at < text.len && text.ptr[at] != quote) {
		if (text.ptr[at] == escape && quote == '"')
			at++;
		at++;
	}
	return at < text.len ? at + 1 : text.len;
}

/* Behind the word that starts at `at`. */
static size_t words_skip_word(struct str text, char escape, size_t at)
{
	while (at < text.len && !words_blank(text.ptr[at])) {
		if (text.ptr[at] == '\'' || text.ptr[at] == '"')
			at = words_skip_quote(text, escape, at);
		else
			at += text.ptr[at] == escape ? 2 : 1;
	}
	return at < text.len ? at : text.len;
}

int words_split_quoted(struct str text, char escape, struct words *out, struct err *err)
{
	size_t at = words_skip_blanks(text, 0);

	while (at < text.len) {
		size_t end = words_skip_word(text, escape, at);

		if (words_add(out, (struct str){text.ptr + at, end - at}, err) < 0)
			return -1;
		at = words_skip_blanks(text, end);
	}
	return 0;
}

/* A character that the escape may stand before, in these quotes. */
static bool words_may_escape(char quote, char c, char escape)
{
	return !quote || c == '"' || c == '$' || c == escape;
}

/* The quote that is open behind a character, or NUL. */
static char words_quote_behind(char quote, char c)
{
	bool opens = c == '"' || c == '\'';

	if (quote)
		return (char)(c == quote ? '\0' : quote);
	return (char)(opens ? c : '\0');
}

int words_escape(struct str text, char escape, struct buf *out, struct err *err)
{
	char quote = '\0';

	for (size_t at = 0; at < text.len; at++) {
		char c = text.ptr[at];
		char next = (char)(at + 1 < text.len ? text.ptr[at + 1] : '\0');
		bool literal = quote == '\'';
		bool escaped = c == escape && !literal && words_may_escape(quote, next, escape);
		/* between quotes a backslash would stay before a backtick */
		bool slash = escaped ? !quote || next != '`' : c == '\\' && !literal;

		if (slash && buf_add(out, STR("\\"), err) < 0)
			return -1;
		if (escaped && ++at == text.len)
			return 0;
		if (!escaped)
			quote = words_quote_behind(quote, c);
		if (buf_add(out, (struct str){text.ptr + at, 1}, err) < 0)
			return -1;
	}
	return 0;
}

static int words_take_json(const json_t *array, struct words *out, struct err *err)
{
	auto_words struct words words = {0};
	json_t *item;
	size_t i;

	json_array_foreach(array, i, item)
	{
		struct str word = json_is_string(item) ? json_str(item) : STR("");

		if (!json_is_string(item))
			return err_set(err, ERR_REFUSED,
				       "element %zu of the JSON form is no string", i + 1);
		if (memchr(word.ptr, '\0', word.len))
			return err_set(err, ERR_REFUSED, "element %zu holds a NUL byte", i + 1);
		if (words_add(&words, word, err) < 0)
			return -1;
	}
	*out = words;
	words = (struct words){0};
	return 1;
}

int words_from_json(struct str text, struct words *out, struct err *err)
{
	AUTO(json) json_t *array = NULL;

	if (!str_starts(text, STR("[")))
		return 0;
	array = json_loadb(text.ptr, text.len, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
	return json_is_array(array) ? words_take_json(array, out, err) : 0;
}

static bool words_is_heredoc(struct str word)
{
	size_t at = 0;

	while (at < word.len && isdigit((unsigned char)word.ptr[at]))
		at++;
	if (word.len - at < 3 || word.ptr[at] != '<' || word.ptr[at + 1] != '<')
		return false;
	at += word.ptr[at + 2] == '-' ? 3 : 2;
	return at < word.len && !memchr(word.ptr + at, '<', word.len - at);
}

bool words_have_heredoc(struct str text, char escape)
{
	size_t at = words_skip_blanks(text, 0);

	while (at < text.len) {
		size_t end = words_skip_word(text, escape, at);

		if (words_is_heredoc((struct str){text.ptr + at, end - at}))
			return true;
		at = words_skip_blanks(text, end);
	}
	return false;
}
