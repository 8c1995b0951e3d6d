/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/expand.h"

#include "bake/mode_priv.h"
#include "bake/pattern_priv.h"
#include "bake/state.h"
#include "bake/words_priv.h"

#include <ctype.h>

struct expansion {
	struct str word;
	size_t at;
	const struct state *state;
	struct buf *out;
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
	return c > 0 && strchr("@*#?-$!0", c) != NULL;
}

static bool expand_is_name(int c)
{
	return c == '_' || (c > 0 && c < 0x80 && isalnum(c));
}

/* The name at the cursor; "" where there is none. */
static int expand_read_name(struct expansion *x, struct str *out, struct err *err)
{
	size_t start = x->at;
	int first = expand_peek(x);

	if (expand_is_special(first) && !isdigit(first)) {
		x->at++;
	} else if (first > 0 && isdigit(first)) {
		while (expand_peek(x) > 0 && isdigit(expand_peek(x)))
			x->at++;
	} else {
		while (expand_is_name(expand_peek(x)))
			x->at++;
		if (expand_peek(x) >= 0x80)
			return err_set(err, ERR_REFUSED,
				       "a variable's name is of ASCII letters, digits and _; "
				       "write ${NAME} where other letters follow it");
	}
	*out = (struct str){x->word.ptr + start, x->at - start};
	return 0;
}

static int expand_put_value(struct expansion *x, struct str name, struct err *err)
{
	struct str value;

	if (!x->state || !state_env_get(x->state, name, &value))
		return 0;
	return buf_add(x->out, value, err);
}

/* Behind "${". */
static int expand_braces(struct expansion *x, struct err *err)
{
	struct str name = {0};
	int c;

	if (expand_read_name(x, &name, err) < 0)
		return -1;
	c = expand_peek(x);
	if (c < 0)
		return err_set(err, ERR_REFUSED, "${" STR_FMT " has no closing }", STR_ARG(name));
	if (name.len == 0)
		return err_set(err, ERR_REFUSED, "${%c: a variable's name is missing", c);
	if (c != '}' && strchr(":-+?#%/", c))
		return err_set(err, ERR_REFUSED,
			       "${" STR_FMT "%c…}: operators are not supported yet; only $NAME "
			       "and ${NAME} are",
			       STR_ARG(name), c);
	if (c != '}')
		return err_set(err, ERR_REFUSED, "${" STR_FMT "%c…} is not a variable",
			       STR_ARG(name), c);
	x->at++;
	return expand_put_value(x, name, err);
}

/* Behind "$". */
static int expand_dollar(struct expansion *x, struct err *err)
{
	struct str name = {0};

	if (expand_peek(x) == '{') {
		x->at++;
		return expand_braces(x, err);
	}
	if (expand_read_name(x, &name, err) < 0)
		return -1;
	if (name.len == 0)
		return expand_put(x, '$', err);
	return expand_put_value(x, name, err);
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

int expand_word(struct str word, const struct state *state, struct buf *out, struct err *err)
{
	struct expansion x = {.word = word, .state = state, .out = out};
	auto_buf struct buf scratch = BUF_INIT(EXPAND_MAX);

	x.out = &scratch;
	while (x.at < word.len) {
		if (expand_next(&x, err) < 0)
			return err->kind == ERR_LIMIT ? err_ctx(err, "expanded word") : -1;
	}
	return buf_add(out, buf_str(&scratch), err);
}

static int expand_words(const struct words *words, const struct state *state, struct words *out,
			struct err *err)
{
	for (size_t i = 0; i < words->count; i++) {
		auto_buf struct buf word = BUF_INIT(EXPAND_MAX);

		if (expand_word(str_of(words->at[i]), state, &word, err) < 0 ||
		    words_add(out, buf_str(&word), err) < 0)
			return -1;
	}
	return 0;
}

static int expand_flag(const char *text, const struct state *state, char **out, struct err *err)
{
	auto_buf struct buf word = BUF_INIT(EXPAND_MAX);

	if (!text)
		return 0;
	if (expand_word(str_of(text), state, &word, err) < 0)
		return -1;
	*out = strdup(word.ptr ? word.ptr : "");
	if (!*out)
		abort();
	return 0;
}

static int expand_run(const struct instruction *run, const struct state *state,
		      struct instruction *out, struct err *err)
{
	out->network_none = run->network_none;
	for (size_t i = 0; i < run->args.count; i++) {
		if (words_add(&out->args, str_of(run->args.at[i]), err) < 0)
			return -1;
	}
	if (run->command && !(out->command = strdup(run->command)))
		abort();
	if (mounts_parse(&run->mount_texts, state, &out->mounts, err) < 0)
		return err_ctx(err, "RUN");
	return buf_add(&out->text, buf_str(&run->text), err);
}

static json_t *expand_words_json(const struct words *words)
{
	json_t *array = json_array();

	for (size_t i = 0; i < words->count; i++)
		json_array_append_new(array, json_from_str(str_of(words->at[i])));
	return array;
}

/* NAME {"args":[…],"chmod":…,"chown":…,"exclude":[…],"parents":true}, what there is of it. */
static int expand_format(struct instruction *out, struct err *err)
{
	AUTO(json) json_t *object = json_object();

	json_object_set_new(object, "args", expand_words_json(&out->args));
	if (out->chown)
		json_object_set_new(object, "chown", json_from_str(str_of(out->chown)));
	if (out->chmod)
		json_object_set_new(object, "chmod", json_from_str(str_of(out->chmod)));
	if (out->excludes.count > 0)
		json_object_set_new(object, "exclude", expand_words_json(&out->excludes));
	if (out->parents)
		json_object_set_new(object, "parents", json_true());
	if (buf_addf(&out->text, err, "%s ", instruction_name(out->kind)) < 0)
		return -1;
	return json_format(object, &out->text, err);
}

/* What only the expanded words can show. */
static int expand_check(const struct instruction *made, struct err *err)
{
	const struct words *args = &made->args;

	if (made->kind == INSTRUCTION_WORKDIR && args->count == 1 && args->at[0][0] == '\0')
		return err_set(err, ERR_REFUSED, "the path is empty");
	for (size_t i = 0; made->kind == INSTRUCTION_ENV && i < args->count; i += 2) {
		if (args->at[i][0] == '\0' || strchr(args->at[i], '='))
			return err_set(err, ERR_REFUSED, "\"%s\" is no name of a variable",
				       args->at[i]);
	}
	for (size_t i = 0; made->kind == INSTRUCTION_COPY && i + 1 < args->count; i++) {
		auto_pattern struct pattern pattern = {0};
		struct str source = str_of(args->at[i]);

		if (instruction_check_source(source, err) < 0)
			return -1;
		if ((made->parents || pattern_has_wildcard(source)) &&
		    pattern_parse(source, &pattern, err) < 0)
			return -1;
	}
	return made->chmod ? mode_check(str_of(made->chmod), err) : 0;
}

/* What is never expanded. */
static int expand_keep(const struct instruction *instruction, struct instruction *made,
		       struct err *err)
{
	made->parents = instruction->parents;
	for (size_t i = 0; i < instruction->excludes.count; i++) {
		if (words_add(&made->excludes, str_of(instruction->excludes.at[i]), err) < 0)
			return -1;
	}
	return 0;
}

static int expand_all(const struct instruction *instruction, const struct state *state,
		      struct instruction *made, struct err *err)
{
	if (expand_words(&instruction->args, state, &made->args, err) < 0 ||
	    expand_flag(instruction->chown, state, &made->chown, err) < 0 ||
	    expand_flag(instruction->chmod, state, &made->chmod, err) < 0 ||
	    expand_keep(instruction, made, err) < 0 || expand_check(made, err) < 0)
		return err_ctx(err, "%s", instruction_name(made->kind));
	return expand_format(made, err);
}

int expand_instruction(const struct instruction *instruction, const struct state *state,
		       struct instruction *out, struct err *err)
{
	auto_instruction struct instruction made = {.kind = instruction->kind,
						    .exec_form = instruction->exec_form,
						    .text = BUF_INIT(INSTRUCTION_TEXT_MAX)};

	if (instruction->kind == INSTRUCTION_RUN ? expand_run(instruction, state, &made, err) < 0
						 : expand_all(instruction, state, &made, err) < 0)
		return -1;
	*out = made;
	made = (struct instruction){0};
	return 0;
}
