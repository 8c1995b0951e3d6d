/* SPDX-License-Identifier: Apache-2.0 */
/* commands_completion.c - a completion for bash, from the rows of the commands. */
#include "api/commands.h"

#include <string.h>

#define COMPLETION_START                                                             \
	"# bash completion for hearth; made by: hearth completion bash\n"            \
	"_hearth_images()\n"                                                         \
	"{\n"                                                                        \
	"\thearth images 2>/dev/null | awk 'NR > 1 && $1 != \"-\" { print $1 }'\n"   \
	"}\n\n"                                                                      \
	"_hearth()\n"                                                                \
	"{\n"                                                                        \
	"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n" \
	"\tlocal command=${COMP_WORDS[1]} options= arguments= value=\n"

#define COMPLETION_CASES                     \
	"\tcompopt -o default 2>/dev/null\n" \
	"\tCOMPREPLY=()\n"                   \
	"\tcase $command in\n"

#define COMPLETION_END                                                      \
	"\tesac\n"                                                          \
	"\tif [ \"$COMP_CWORD\" = 1 ]; then\n"                              \
	"\t\tCOMPREPLY=($(compgen -W \"$commands\" -- \"$cur\"))\n"         \
	"\telif [[ $value == DIR* ]]; then\n"                               \
	"\t\tCOMPREPLY=($(compgen -d -- \"$cur\"))\n"                       \
	"\telif [ -n \"$value\" ]; then\n"                                  \
	"\t\tCOMPREPLY=()\n"                                                \
	"\telif [[ $cur == -* ]]; then\n"                                   \
	"\t\tCOMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"          \
	"\telif [[ $arguments == *IMAGE* ]]; then\n"                        \
	"\t\tCOMPREPLY=($(compgen -W \"$(_hearth_images)\" -- \"$cur\"))\n" \
	"\tfi\n"                                                            \
	"}\n"                                                               \
	"complete -F _hearth hearth\n"

/* What stands for a value tells how it is completed: DIR, FILE, SPEC, IMAGE. */
static void completion_values(const struct cli_command *command, FILE *out)
{
	(void)fputs("\t\tcase $prev in\n", out);
	for (size_t i = 0; i < command->option_count; i++) {
		const struct cli_option *option = &command->options[i];

		if (option->value)
			(void)fprintf(out, "\t\t--%s) value='%s' ;;\n", option->name,
				      option->value);
	}
	(void)fputs("\t\tesac\n", out);
}

static void completion_command(const struct cli_command *command, FILE *out)
{
	(void)fprintf(out, "\t%s)\n\t\targuments='%s'\n\t\toptions='", command->name,
		      command->arguments);
	for (size_t i = 0; i < command->option_count; i++)
		(void)fprintf(out, "%s--%s", i > 0 ? " " : "", command->options[i].name);
	(void)fputs("'\n", out);
	completion_values(command, out);
	(void)fputs("\t\t;;\n", out);
}

void commands_print_completion(FILE *out)
{
	(void)fputs(COMPLETION_START "\tlocal commands='", out);
	for (size_t i = 0; commands[i]; i++)
		(void)fprintf(out, "%s%s", i > 0 ? " " : "", commands[i]->name);
	(void)fputs("'\n\n" COMPLETION_CASES, out);
	for (size_t i = 0; commands[i]; i++)
		completion_command(commands[i], out);
	(void)fputs(COMPLETION_END, out);
}
