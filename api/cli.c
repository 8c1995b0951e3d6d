/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli.h"

#include "layers/base/array.h"
#include "layers/base/nearest.h"
#include "layers/base/size.h"

#include <assert.h>
#include <string.h>

#define CLI_HELP_COLUMN 30 /* where the explanations start */
#define CLI_HELP_WIDTH 80

static int cli_find_option(const struct cli_command *command, struct str name)
{
	for (size_t i = 0; i < command->option_count; i++) {
		if (str_equal(str_of(command->options[i].name), name))
			return (int)i;
	}
	return -1;
}

static int cli_unknown_option(const struct cli_command *command, struct str name, struct err *err)
{
	struct nearest nearest;
	char dashed[NEAREST_MAX];

	(void)snprintf(dashed, sizeof(dashed), "--" STR_FMT, STR_ARG(name));
	nearest_init(&nearest, name);
	for (size_t i = 0; i < command->option_count; i++)
		nearest_offer(&nearest, str_of(command->options[i].name));
	if (nearest.name[0])
		return err_set(err, ERR_INVALID, "%s has no option %s; did you mean --%s?",
			       command->name, dashed, nearest.name);
	return err_set(err, ERR_INVALID, "%s has no option %s; see hearth %s --help", command->name,
		       dashed, command->name);
}

static int cli_add_value(struct cli *cli, int option, const char *value, struct err *err)
{
	struct cli_value *values = &cli->values[option];
	const struct cli_option *spec = &cli->command->options[option];

	if (spec->value && *value == '\0')
		return err_set(err, ERR_INVALID, "--%s is empty: expected %s", spec->name,
			       spec->value);
	if (values->count == CLI_REPEAT_MAX)
		return err_set(err, ERR_LIMIT, "--%s was given more than %d times", spec->name,
			       CLI_REPEAT_MAX);
	if (values->count > 0 && !spec->repeats && spec->value)
		return err_set(err, ERR_INVALID, "--%s was given twice", spec->name);
	values->at = array_grow(values->at, values->count, sizeof(*values->at));
	values->at[values->count++] = value;
	return 0;
}

/* One "--name", "--name=value" or "--name value". */
static int cli_parse_option(struct cli *cli, int argc, char **argv, int *at, struct err *err)
{
	const char *text = argv[*at] + 2;
	const char *equals = strchr(text, '=');
	struct str name = {text, equals ? (size_t)(equals - text) : strlen(text)};
	int option = cli_find_option(cli->command, name);
	bool wants;

	if (option < 0)
		return cli_unknown_option(cli->command, name, err);
	wants = cli->command->options[option].value != NULL;
	if (!wants && equals)
		return err_set(err, ERR_INVALID, "--" STR_FMT " takes no value", STR_ARG(name));
	if (!wants || equals)
		return cli_add_value(cli, option, equals ? equals + 1 : "", err);
	if (*at + 1 >= argc)
		return err_set(err, ERR_INVALID, "--" STR_FMT " needs a value: %s", STR_ARG(name),
			       cli->command->options[option].value);
	return cli_add_value(cli, option, argv[++*at], err);
}

/* The two switches that everybody types with one letter; -1 for anything else. */
static int cli_find_short(const struct cli_command *command, const char *text)
{
	if (strcmp(text, "-h") == 0)
		return cli_find_option(command, STR("help"));
	if (strcmp(text, "-f") == 0)
		return cli_find_option(command, STR("follow"));
	return -1;
}

/* One argument that may be an option; *options ends with "--". */
static int cli_parse_one(struct cli *cli, int argc, char **argv, int *at, bool *options,
			 struct err *err)
{
	const char *text = argv[*at];
	int option;

	if (text[0] == '\0')
		return err_set(err, ERR_INVALID, "an argument is empty: expected %s",
			       *cli->command->arguments ? cli->command->arguments : "none");
	if (!*options || text[0] != '-' || text[1] == '\0') {
		cli->args[cli->arg_count++] = text;
		return 0;
	}
	if (strcmp(text, "--") == 0) {
		*options = false;
		return 0;
	}
	if (text[1] == '-')
		return cli_parse_option(cli, argc, argv, at, err);
	option = cli_find_short(cli->command, text);
	if (option >= 0)
		return cli_add_value(cli, option, "", err);
	return err_set(err, ERR_INVALID, "%s: options have long names; see hearth %s --help", text,
		       cli->command->name);
}

static int cli_check_count(const struct cli *cli, struct err *err)
{
	const struct cli_command *command = cli->command;

	if (cli_has(cli, "help"))
		return 0;
	if (cli->arg_count < command->args_min)
		return err_set(err, ERR_INVALID, "%s needs %s; see hearth %s --help", command->name,
			       command->arguments, command->name);
	if (cli->arg_count > command->args_max)
		return err_set(err, ERR_INVALID, "unexpected argument %s; see hearth %s --help",
			       cli->args[command->args_max], command->name);
	return 0;
}

int cli_parse(struct cli *cli, int argc, char **argv, struct err *err)
{
	bool options = true;

	assert(cli->command->option_count <= CLI_OPTIONS_MAX);
	cli->args = calloc((size_t)argc + 1, sizeof(*cli->args));
	if (!cli->args)
		abort();
	for (int i = 0; i < argc; i++) {
		if (cli_parse_one(cli, argc, argv, &i, &options, err) < 0)
			return -1;
	}
	return cli_check_count(cli, err);
}

void cli_done(struct cli *cli)
{
	for (size_t i = 0; i < CLI_OPTIONS_MAX; i++)
		free(cli->values[i].at);
	free(cli->args);
	free(cli->data_path);
	free(cli->worker_path);
	free(cli->hearth_path);
	free(cli->puller_path);
	free(cli->daemon_path);
	free(cli->agent_path);
	config_done(&cli->config);
	*cli = (struct cli){0};
}

struct cli_value cli_list(const struct cli *cli, const char *option)
{
	int at = cli_find_option(cli->command, str_of(option));

	assert(at >= 0);
	return cli->values[at];
}

bool cli_has(const struct cli *cli, const char *option)
{
	return cli_list(cli, option).count > 0;
}

const char *cli_text(const struct cli *cli, const char *option)
{
	struct cli_value values = cli_list(cli, option);

	return values.count > 0 ? values.at[values.count - 1] : NULL;
}

int cli_read_size(const struct cli *cli, const char *option, uint64_t *out, struct err *err)
{
	const char *text = cli_text(cli, option);

	if (text && size_parse(str_of(text), SIZE_DISK, out, err) < 0)
		return err_ctx(err, "--%s %s", option, text);
	return 0;
}

int cli_read_step(const char *name, const char *text, size_t *out, struct err *err)
{
	uint64_t step;

	if (!str_parse_number(str_of(text), &step) || step == 0)
		return err_set(err, ERR_INVALID, "%s %s: expected a number from 1", name, text);
	*out = step;
	return 0;
}

/* What an option does, in lines of CLI_HELP_WIDTH at most. */
static void cli_print_words(const char *text, FILE *out)
{
	struct str rest = str_of(text);
	struct str word;
	size_t column = 0;

	while (str_cut(&rest, ' ', &word)) {
		const char *before = column > 0 ? " " : "";

		if (column + 1 + word.len > CLI_HELP_WIDTH - CLI_HELP_COLUMN) {
			(void)fprintf(out, "\n%*s", CLI_HELP_COLUMN, "");
			before = "";
			column = 0;
		}
		(void)fprintf(out, "%s" STR_FMT, before, STR_ARG(word));
		column += strlen(before) + word.len;
	}
	(void)fputc('\n', out);
}

void cli_print_help(const struct cli_command *command, FILE *out)
{
	(void)fprintf(out, "hearth %s%s%s [OPTIONS]\n\n%s\n%s%s\nOptions:\n", command->name,
		      *command->arguments ? " " : "", command->arguments, command->summary,
		      *command->detail ? "\n" : "", command->detail);
	for (size_t i = 0; i < command->option_count; i++) {
		const struct cli_option *option = &command->options[i];
		int width = fprintf(out, "  --%s%s%s", option->name, option->value ? " " : "",
				    option->value ? option->value : "");

		if (width >= CLI_HELP_COLUMN)
			width = fprintf(out, "\n") - 1;
		(void)fprintf(out, "%*s", CLI_HELP_COLUMN - width, "");
		cli_print_words(option->help, out);
	}
}

static int cli_open(const struct cli *cli, bool create, struct store **out, struct err *err)
{
	const struct store_options options = {
		.path = cli->data_path,
		.map_bytes = cli->map_bytes,
		.create = create,
	};

	return store_open(&options, out, err);
}

/*
 * Even commands that only read write there: they note what they use, so that it
 * is not collected meanwhile.
 */
static int cli_refuse_store(const struct cli *cli, struct err *err)
{
	const struct err why = *err;
	int os = why.kind == ERR_OS ? why.os : 0;

	if (os == EROFS || os == EACCES || os == EPERM)
		(void)err_set(err, ERR_DENIED, "%s; give one that can be written, by --data",
			      why.text);
	if (strstr(why.text, cli->data_path))
		return -1;
	return err_ctx(err, "data directory %s", cli->data_path);
}

int cli_open_store(const struct cli *cli, struct store **out, struct err *err)
{
	return cli_open(cli, true, out, err) < 0 ? cli_refuse_store(cli, err) : 0;
}

int cli_find_store(const struct cli *cli, struct store **out, struct err *err)
{
	if (cli_open(cli, false, out, err) == 0)
		return 1;
	if (err->kind == ERR_NOT_FOUND)
		return 0;
	return cli_refuse_store(cli, err);
}
