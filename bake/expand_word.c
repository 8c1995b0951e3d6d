/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expand_word.c - one word of an instruction.
 *
 *	word    = { "'" text "'" | '"' { dollar | escape | text } '"'
 *	          | dollar | "\" character | character }
 *	dollar  = "$" name | "${" name "}" | "${" name form "}" | "$"
 *	form    = [":"] ( "-" | "+" | "?" ) word      ":": empty is as unset
 *	        | ( "#" | "##" | "%" | "%%" ) pattern         subst_priv.h
 *	        | ( "/" | "//" ) pattern "/" word
 *	name    = a letter or "_", then letters, digits and "_", of all scripts;
 *	          digits; or one of @ * # ? - $ ! 0, which no image sets
 *
 * Words and patterns in a form are expanded like any other; backslashes of a
 * pattern, and of what replaces it, stay.
 */
#include "bake/expand.h"

#include "bake/rune_priv.h"
#include "bake/state.h"
#include "bake/subst_priv.h"

#include <ctype.h>

#define EXPAND_DEPTH_MAX 100 /* of forms in forms; each takes a stack frame or two */

struct expansion {
	struct str word;
	size_t at;
	const struct state *state;
	struct buf *out;
	bool raw; /* backslashes stay */
	int depth;
};

static int expand_peek(const struct expansion *x)
{
	return x->at < x->word.len ? (unsigned char)x->word.ptr[x->at] : -1;
}

static int expand_put(struct expansion *x, char c, struct err *err)
{
	return buf_add(x->out, (struct str){&c, 1}, err);
}

/* Names of the shell that no image sets. */
static bool expand_is_special(int c)
{
	return c > 0 && strchr("@*#?-$!", c) != NULL;
}

/* Go over letters, digits and "_". */
static void expand_skip_word(struct expansion *x)
{
	while (x->at < x->word.len) {
		struct str rest = {x->word.ptr + x->at, x->word.len - x->at};
		size_t before = rest.len;

		if (!rune_is_word(rune_take(&rest)))
			return;
		x->at += before - rest.len;
	}
}

/* The name at the cursor; "" where there is none. */
static struct str expand_read_name(struct expansion *x)
{
	size_t start = x->at;
	int first = expand_peek(x);

	if (expand_is_special(first)) {
		x->at++;
	} else if (first > 0 && isdigit(first)) {
		while (expand_peek(x) > 0 && isdigit(expand_peek(x)))
			x->at++;
	} else {
		expand_skip_word(x);
	}
	return (struct str){x->word.ptr + start, x->at - start};
}

static int expand_until(struct expansion *x, int stop, struct err *err);

/* A part of a form, up to `stop`, which is passed. */
static int expand_part(struct expansion *x, int stop, bool raw, struct buf *out, struct err *err)
{
	struct buf *before = x->out;
	bool was_raw = x->raw;
	int result;

	if (x->depth == EXPAND_DEPTH_MAX)
		return err_set(err, ERR_REFUSED, "${…} nested deeper than %d", EXPAND_DEPTH_MAX);
	x->depth++;
	x->raw = raw;
	x->out = out;
	result = expand_until(x, stop, err);
	x->out = before;
	x->raw = was_raw;
	x->depth--;
	return result;
}

/* What a form is about: a variable, and whether it counts as set. */
struct variable {
	struct str name;
	struct str value;
	bool set;
	bool colon; /* and empty is as unset */
};

static int expand_demand(const struct expansion *x, const struct variable *variable,
			 struct str message, struct err *err)
{
	const char *usual =
		variable->set ? "is not allowed to be empty" : "is not allowed to be unset";

	if (!x->state)
		return 0; /* only the form is judged */
	return err_set(err, ERR_REFUSED, STR_FMT ": " STR_FMT, STR_ARG(variable->name),
		       STR_ARG(message.len ? message : str_of(usual)));
}

/* ${NAME-word}, ${NAME+word}, ${NAME?word}, behind the sign. */
static int expand_default(struct expansion *x, const struct variable *variable, int sign,
			  struct err *err)
{
	auto_buf struct buf word = BUF_INIT(EXPAND_MAX);
	bool has = variable->set && !(variable->colon && variable->value.len == 0);

	if (expand_part(x, '}', false, &word, err) < 0)
		return -1;
	if (sign == '+')
		return has ? buf_add(x->out, buf_str(&word), err) : 0;
	if (has)
		return buf_add(x->out, variable->value, err);
	if (sign == '-')
		return buf_add(x->out, buf_str(&word), err);
	return expand_demand(x, variable, buf_str(&word), err);
}

/* ${NAME#pattern} and the like, behind the first sign. */
static int expand_trim(struct expansion *x, const struct variable *variable, int sign,
		       struct err *err)
{
	auto_buf struct buf pattern = BUF_INIT(EXPAND_MAX);
	bool longest = expand_peek(x) == sign;

	if (longest)
		x->at++;
	if (expand_part(x, '}', true, &pattern, err) < 0)
		return -1;
	if (!x->state)
		return 0; /* what is in the pattern may be a value's */
	return subst_trim(variable->value, buf_str(&pattern),
			  sign == '#' ? SUBST_FRONT : SUBST_BACK, longest, x->out, err);
}

/* ${NAME/pattern/word} and ${NAME//pattern/word}, behind the first slash. */
static int expand_replace(struct expansion *x, const struct variable *variable, struct err *err)
{
	auto_buf struct buf pattern = BUF_INIT(EXPAND_MAX);
	auto_buf struct buf word = BUF_INIT(EXPAND_MAX);
	bool all = expand_peek(x) == '/';

	if (all)
		x->at++;
	if (expand_part(x, '/', true, &pattern, err) < 0 ||
	    expand_part(x, '}', true, &word, err) < 0)
		return -1;
	if (!x->state)
		return 0;
	return subst_replace(variable->value, buf_str(&pattern), buf_str(&word), all, x->out, err);
}

static int expand_refuse_form(const struct variable *variable, int c, struct err *err)
{
	if (c < 0)
		return err_set(err, ERR_REFUSED, "${" STR_FMT " has no closing }",
			       STR_ARG(variable->name));
	return err_set(err, ERR_REFUSED, "${" STR_FMT "%s%c…} is no form of a variable",
		       STR_ARG(variable->name), variable->colon ? ":" : "", c);
}

/* Behind the name in "${name". */
static int expand_form(struct expansion *x, struct variable *variable, struct err *err)
{
	int c = expand_peek(x);

	variable->colon = c == ':';
	if (variable->colon) {
		x->at++;
		c = expand_peek(x);
	}
	x->at++;
	if (c == '-' || c == '+' || c == '?')
		return expand_default(x, variable, c, err);
	if (variable->colon || c < 0)
		return expand_refuse_form(variable, c, err);
	if (c == '}')
		return buf_add(x->out, variable->value, err);
	if (c == '#' || c == '%')
		return expand_trim(x, variable, c, err);
	return c == '/' ? expand_replace(x, variable, err) : expand_refuse_form(variable, c, err);
}

static struct variable expand_look_up(const struct expansion *x, struct str name)
{
	struct variable variable = {.name = name, .value = STR("")};

	variable.set = x->state && state_env_get(x->state, name, &variable.value);
	return variable;
}

/* Behind "${". */
static int expand_braces(struct expansion *x, struct err *err)
{
	struct variable variable = expand_look_up(x, expand_read_name(x));
	int c = expand_peek(x);

	if (variable.name.len == 0 && c >= 0)
		return err_set(err, ERR_REFUSED, "${%c: a variable's name is missing", c);
	return expand_form(x, &variable, err);
}

/* Behind "$". */
static int expand_dollar(struct expansion *x, struct err *err)
{
	struct str name;

	if (expand_peek(x) == '{') {
		x->at++;
		return expand_braces(x, err);
	}
	name = expand_read_name(x);
	if (name.len == 0)
		return expand_put(x, '$', err);
	return buf_add(x->out, expand_look_up(x, name).value, err);
}

static int expand_open_quote(char quote, struct err *err)
{
	return err_set(err, ERR_REFUSED, "the quote %c is never closed", quote);
}

static int expand_single(struct expansion *x, struct err *err)
{
	struct str rest = {x->word.ptr + x->at, x->word.len - x->at};
	const char *end = memchr(rest.ptr, '\'', rest.len);

	if (!end)
		return expand_open_quote('\'', err);
	rest.len = (size_t)(end - rest.ptr);
	x->at += rest.len + 1;
	return buf_add(x->out, rest, err);
}

/* A backslash between double quotes escapes only what would be special there. */
static int expand_double_escape(struct expansion *x, struct err *err)
{
	int next = expand_peek(x);

	if (x->raw && expand_put(x, '\\', err) < 0)
		return -1;
	if (next != '"' && next != '$' && next != '\\')
		return expand_put(x, '\\', err);
	x->at++;
	return expand_put(x, (char)next, err);
}

static int expand_double(struct expansion *x, struct err *err)
{
	int c;

	while ((c = expand_peek(x)) >= 0) {
		int result = 0;

		x->at++;
		if (c == '"')
			return 0;
		if (c == '$')
			result = expand_dollar(x, err);
		else if (c == '\\')
			result = expand_double_escape(x, err);
		else
			result = expand_put(x, (char)c, err);
		if (result < 0)
			return -1;
	}
	return expand_open_quote('"', err);
}

static int expand_escape(struct expansion *x, struct err *err)
{
	int next = expand_peek(x);

	if (x->raw && expand_put(x, '\\', err) < 0)
		return -1;
	if (next < 0)
		return 0; /* a lone one at the end is dropped */
	x->at++;
	return expand_put(x, (char)next, err);
}

static int expand_next(struct expansion *x, struct err *err)
{
	char c = x->word.ptr[x->at++];

	switch (c) {
	case '\'':
		return expand_single(x, err);
	case '"':
		return expand_double(x, err);
	case '$':
		return expand_dollar(x, err);
	case '\\':
		return expand_escape(x, err);
	default:
		return expand_put(x, c, err);
	}
}

/* Up to the word's end (stop is -1), or to `stop`, which is passed. */
static int expand_until(struct expansion *x, int stop, struct err *err)
{
	while (x->at < x->word.len) {
		if (stop >= 0 && expand_peek(x) == stop) {
			x->at++;
			return 0;
		}
		if (expand_next(x, err) < 0)
			return -1;
	}
	if (stop < 0)
		return 0;
	return err_set(err, ERR_REFUSED, "${…} has no %s%c", stop == '}' ? "closing " : "second ",
		       stop);
}

int expand_word(struct str word, const struct state *state, struct buf *out, struct err *err)
{
	auto_buf struct buf scratch = BUF_INIT(EXPAND_MAX);
	struct expansion x = {.word = word, .state = state, .out = &scratch};

	if (expand_until(&x, -1, err) < 0)
		return err->kind == ERR_LIMIT ? err_ctx(err, "expanded word") : -1;
	return buf_add(out, buf_str(&scratch), err);
}
