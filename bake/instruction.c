/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instruction.c - the grammar of a step, once its lines are joined (lines.c).
 *
 *	step     = NAME blanks { FLAG blanks } [ "--" blanks ] rest
 *	NAME     = RUN | COPY | ENV | WORKDIR                in any case
 *	FLAG     = "--" name [ "=" value ]                   quotes removed (flags.c)
 *	RUN      : rest is a JSON array of strings, else text for the shell
 *	COPY     : rest is a JSON array of strings, else words cut at blanks;
 *	           sources, then the destination
 *	ENV      : rest is words NAME=VALUE, else one NAME and its value
 *	WORKDIR  : rest is the path, blanks included
 *
 *	RUN      --network=default|none  --mount=MOUNT (again and again)
 *	COPY     --from=IMAGE  --chown=USER[:GROUP]  --chmod=MODE
 *	         --exclude=PATTERN (again and again)
 *	         --link[=true|false]  --parents[=true|false]     in any case
 *
 * Sources, destination, --chown and --chmod are words in which variables
 * expand, in ENV names and values, in WORKDIR the path; in RUN nothing does
 * but its mounts' values. --from and --exclude stand as they are.
 */
#include "bake/instruction.h"

#include "bake/expand.h"
#include "bake/flags_priv.h"
#include "bake/lines_priv.h"
#include "bake/words_priv.h"
#include "layers/base/nearest.h"

#include <ctype.h>
#include <strings.h>

#define INSTRUCTION_NAME_MAX ((size_t)32)

/* As BuildKit's linter has them: NoEmptyContinuation, LegacyKeyValueFormat. */
#define INSTRUCTION_WARN_GAP \
	"a blank line within a continued one is passed over; begin it with # or remove it"
#define INSTRUCTION_WARN_ENV "ENV NAME VALUE takes the rest of the line; write ENV NAME=VALUE"

static const char *const names[] = {
	[INSTRUCTION_RUN] = "RUN",
	[INSTRUCTION_COPY] = "COPY",
	[INSTRUCTION_ENV] = "ENV",
	[INSTRUCTION_WORKDIR] = "WORKDIR",
};

const char *instruction_name(enum instruction_kind kind)
{
	return names[kind];
}

void instruction_count(struct str text, bool cached, struct instruction_counts *counts)
{
	for (size_t kind = 0; kind < INSTRUCTION_KINDS; kind++) {
		size_t len = strlen(names[kind]);

		if (text.len <= len || strncasecmp(text.ptr, names[kind], len) != 0 ||
		    !strchr(" \t\\", text.ptr[len]))
			continue;
		counts->all[kind]++;
		counts->cached[kind] += cached;
	}
}

/* What a Dockerfile has besides, and what to write here. */
static const struct {
	const char *name;
	const char *instead;
} others[] = {
	{"FROM", "the base is the image's \"base\""},
	{"ADD", "COPY takes files from the context, RUN can download"},
	{"ARG", "ENV sets a variable"},
	{"CMD", "an image's own command is never run"},
	{"ENTRYPOINT", "an image's own command is never run"},
	{"EXPOSE", "ports need not be declared"},
	{"HEALTHCHECK", "it has no effect in a sandbox"},
	{"LABEL", "labels come from the base"},
	{"MAINTAINER", "labels come from the base"},
	{"ONBUILD", "write the step itself"},
	{"SHELL", "RUN [\"/bin/bash\", \"-c\", …] chooses a shell"},
	{"STOPSIGNAL", "it has no effect in a sandbox"},
	{"USER", "the base's user runs the steps"},
	{"VOLUME", "directories need not be declared"},
};

static int instruction_refuse_name(const char *name, struct err *err)
{
	char hint[NEAREST_HINT_MAX];

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (strcmp(others[i].name, name) == 0)
			return err_set(err, ERR_REFUSED,
				       "%s is refused: only RUN, COPY, ENV and WORKDIR are "
				       "executed; %s",
				       name, others[i].instead);
	}
	return err_set(err, ERR_REFUSED,
		       "unknown instruction %s: only RUN, COPY, ENV and WORKDIR are executed%s",
		       name,
		       nearest_hint(str_of(name), names, sizeof(names) / sizeof(names[0]), hint));
}

/* Take the name off *rest, in upper case. */
static int instruction_take_name(struct str *rest, enum instruction_kind *out, struct err *err)
{
	char name[INSTRUCTION_NAME_MAX + 1];
	size_t n = 0;

	while (n < rest->len && !words_blank(rest->ptr[n]))
		n++;
	for (size_t i = 0; i < INSTRUCTION_NAME_MAX; i++)
		name[i] = (char)(i < n ? toupper((unsigned char)rest->ptr[i]) : '\0');
	name[INSTRUCTION_NAME_MAX] = '\0';
	*rest = str_skip(*rest, n);
	while (rest->len > 0 && words_blank(rest->ptr[0]))
		*rest = str_skip(*rest, 1);
	for (size_t kind = 0; kind < sizeof(names) / sizeof(names[0]); kind++) {
		if (strcmp(names[kind], name) == 0) {
			*out = (enum instruction_kind)kind;
			return 0;
		}
	}
	return instruction_refuse_name(name, err);
}

static int instruction_refuse_heredoc(struct err *err)
{
	return err_set(err, ERR_REFUSED, "heredocs (<<NAME) are not supported yet");
}

static int instruction_check_argument(size_t len, struct err *err)
{
	if (len > INSTRUCTION_ARGUMENT_MAX)
		return err_set(
			err, ERR_REFUSED,
			"an argument of %zu bytes; Linux takes %zu: COPY a script, and RUN it", len,
			INSTRUCTION_ARGUMENT_MAX);
	return 0;
}

static int instruction_read_run(struct instruction *to, struct str rest, struct err *err)
{
	int json = words_from_json(rest, &to->args, err);

	if (json < 0)
		return -1;
	to->exec_form = json == 1;
	if (rest.len == 0 || (to->exec_form && to->args.count == 0))
		return err_set(err, ERR_REFUSED, "a command is missing");
	if (to->exec_form && to->args.at[0][0] == '\0')
		return err_set(err, ERR_REFUSED, "the program's name is empty");
	for (size_t i = 0; i < to->args.count; i++) {
		if (instruction_check_argument(strlen(to->args.at[i]), err) < 0)
			return -1;
	}
	if (to->exec_form)
		return 0;
	if (words_have_heredoc(rest, to->escape))
		return instruction_refuse_heredoc(err);
	if (instruction_check_argument(rest.len, err) < 0)
		return -1;
	to->command = str_dup(rest);
	return 0;
}

/* What a source may not be, as written or expanded. */
int instruction_check_source(struct str source, struct err *err)
{
	static const char *const remote[] = {"http://", "https://", "git://", "ssh://", "git@"};

	for (size_t i = 0; i < sizeof(remote) / sizeof(remote[0]); i++) {
		if (str_starts(source, str_of(remote[i])))
			return err_set(err, ERR_REFUSED,
				       STR_FMT ": COPY takes files from the context; a RUN step "
					       "can download",
				       STR_ARG(source));
	}
	return 0;
}

static int instruction_escape_word(char escape, char **word, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(2 * strlen(*word) + 1);

	if (words_escape(str_of(*word), escape, &text, err) < 0)
		return -1;
	free(*word);
	*word = str_dup(buf_str(&text));
	return 0;
}

/* Rewrite its words with a backslash as the escape, and check them. */
static int instruction_check_form(struct instruction *to, struct err *err)
{
	struct words *args = &to->args;

	for (size_t i = 0; i < args->count; i++) {
		auto_buf struct buf scratch = BUF_INIT(EXPAND_MAX);

		if (to->escape != '\\' &&
		    instruction_escape_word(to->escape, &args->at[i], err) < 0)
			return -1;
		if (expand_word(str_of(args->at[i]), NULL, &scratch, err) < 0)
			return err_ctx(err, "%s", args->at[i]);
	}
	return 0;
}

static int instruction_check_flag(const char *text, struct err *err)
{
	auto_buf struct buf scratch = BUF_INIT(EXPAND_MAX);

	return text ? expand_word(str_of(text), NULL, &scratch, err) : 0;
}

static int instruction_read_copy(struct instruction *to, struct str rest, struct err *err)
{
	int json = words_from_json(rest, &to->args, err);

	if (json < 0)
		return -1;
	to->exec_form = json == 1;
	if (!to->exec_form && words_have_heredoc(rest, to->escape))
		return instruction_refuse_heredoc(err);
	if (!to->exec_form && words_split(rest, &to->args, err) < 0)
		return -1;
	if (to->args.count < 2)
		return err_set(err, ERR_REFUSED, "expected at least one source and a destination");
	for (size_t i = 0; i + 1 < to->args.count; i++) {
		if (instruction_check_source(str_of(to->args.at[i]), err) < 0)
			return -1;
	}
	if (instruction_check_flag(to->chown, err) < 0 ||
	    instruction_check_flag(to->chmod, err) < 0)
		return -1;
	return instruction_check_form(to, err);
}

static int instruction_add_pair(struct instruction *to, struct str name, struct str value,
				struct err *err)
{
	if (name.len == 0)
		return err_set(err, ERR_REFUSED, "the name before = is empty");
	if (words_add(&to->args, name, err) < 0)
		return -1;
	return words_add(&to->args, value, err);
}

/* `ENV NAME value to the end of the line`. */
static int instruction_read_old_env(struct instruction *to, struct str rest, struct err *err)
{
	struct str name = {rest.ptr, 0};

	while (name.len < rest.len && !words_blank(rest.ptr[name.len]))
		name.len++;
	rest = str_skip(rest, name.len);
	while (rest.len > 0 && words_blank(rest.ptr[0]))
		rest = str_skip(rest, 1);
	if (rest.len == 0)
		return err_set(err, ERR_REFUSED, "expected NAME=VALUE, found only " STR_FMT,
			       STR_ARG(name));
	to->warning = INSTRUCTION_WARN_ENV;
	return instruction_add_pair(to, name, rest, err);
}

static int instruction_read_env(struct instruction *to, struct str rest, struct err *err)
{
	auto_words struct words words = {0};

	if (words_split_quoted(rest, to->escape, &words, err) < 0)
		return -1;
	if (words.count == 0)
		return err_set(err, ERR_REFUSED, "expected NAME=VALUE");
	if (!strchr(words.at[0], '='))
		return instruction_read_old_env(to, rest, err) < 0
			       ? -1
			       : instruction_check_form(to, err);
	for (size_t i = 0; i < words.count; i++) {
		struct str name = str_of(words.at[i]);
		const char *equals = strchr(name.ptr, '=');

		if (!equals)
			return err_set(err, ERR_REFUSED,
				       "expected NAME=VALUE, found %s; quote "
				       "values that hold blanks",
				       name.ptr);
		name.len = (size_t)(equals - name.ptr);
		if (instruction_add_pair(to, name, str_of(equals + 1), err) < 0)
			return -1;
	}
	return instruction_check_form(to, err);
}

static int instruction_read_workdir(struct instruction *to, struct str rest, struct err *err)
{
	if (rest.len == 0)
		return err_set(err, ERR_REFUSED, "a path is missing");
	if (words_add(&to->args, rest, err) < 0)
		return -1;
	return instruction_check_form(to, err);
}

static int instruction_read(struct instruction *to, struct str rest, struct err *err)
{
	static int (*const read[])(struct instruction *, struct str, struct err *) = {
		[INSTRUCTION_RUN] = instruction_read_run,
		[INSTRUCTION_COPY] = instruction_read_copy,
		[INSTRUCTION_ENV] = instruction_read_env,
		[INSTRUCTION_WORKDIR] = instruction_read_workdir,
	};

	/*
	 * The canonical text, with a backslash as the escape, parses the same;
	 * a shell's command stays as it is.
	 */
	if (to->escape != '\\' && (to->kind != INSTRUCTION_RUN || str_starts(rest, STR("--"))) &&
	    buf_addf(&to->text, err, "# escape=%c\n", to->escape) < 0)
		return -1;
	if (buf_addf(&to->text, err, "%s ", names[to->kind]) < 0 ||
	    buf_add(&to->text, rest, err) < 0)
		return -1;
	if (flags_take(to, &rest, err) < 0 || read[to->kind](to, rest, err) < 0)
		return err_ctx(err, "%s", names[to->kind]);
	return 0;
}

int instruction_parse(struct str text, struct instruction *out, struct err *err)
{
	auto_instruction struct instruction made = {.text = BUF_INIT(INSTRUCTION_TEXT_MAX)};
	auto_buf struct buf line = BUF_INIT(INSTRUCTION_MAX);
	struct str rest;
	struct lines_seen seen;

	if (text.len >= INSTRUCTION_MAX)
		return err_set(err, ERR_REFUSED, "a step of %zu bytes; it must be below %zu",
			       text.len, INSTRUCTION_MAX);
	if (lines_join(text, &line, &seen, err) < 0)
		return -1;
	made.escape = seen.escape;
	rest = buf_str(&line);
	if (rest.len == 0)
		return err_set(err, ERR_REFUSED,
			       "an empty step: write its instruction, or remove it");
	if (instruction_take_name(&rest, &made.kind, err) < 0 ||
	    instruction_read(&made, rest, err) < 0)
		return -1;
	if (seen.gap)
		made.warning = INSTRUCTION_WARN_GAP;
	*out = made;
	made = (struct instruction){0};
	return 0;
}

void instruction_done(struct instruction *instruction)
{
	buf_done(&instruction->text);
	words_done(&instruction->args);
	words_done(&instruction->mount_texts);
	mounts_done(&instruction->mounts);
	free(instruction->command);
	free(instruction->chown);
	free(instruction->chmod);
	free(instruction->from);
	words_done(&instruction->excludes);
	*instruction = (struct instruction){0};
}
