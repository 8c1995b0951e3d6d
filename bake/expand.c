/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/expand.h"

#include "bake/mode_priv.h"
#include "bake/pattern_priv.h"
#include "bake/state.h"
#include "bake/words_priv.h"

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

/* NAME {"args":[…],"chmod":…,"chown":…,"exclude":[…],"from":…,…}, with the members that it has. */
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
	if (out->from)
		json_object_set_new(object, "from", json_from_str(str_of(out->from)));
	if (out->link)
		json_object_set_new(object, "link", json_true());
	if (out->parents)
		json_object_set_new(object, "parents", json_true());
	if (buf_addf(&out->text, err, "%s ", instruction_name(out->kind)) < 0)
		return -1;
	return json_format(object, &out->text, err);
}

/* Checks that need the expanded words. */
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

/* Copy what is never expanded. */
static int expand_keep(const struct instruction *instruction, struct instruction *made,
		       struct err *err)
{
	made->parents = instruction->parents;
	made->link = instruction->link;
	if (instruction->from && !(made->from = strdup(instruction->from)))
		abort();
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
