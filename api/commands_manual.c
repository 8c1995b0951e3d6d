/* SPDX-License-Identifier: Apache-2.0 */
/* commands_manual.c - the texts of --help as a man page. */
#include "api/commands.h"

#define MANUAL_START                                                                          \
	".TH HEARTH 1\n"                                                                      \
	".SH NAME\nhearth \\- bakes container images from a base and steps\n"                 \
	".SH SYNOPSIS\n.B hearth\n.I COMMAND\n[\\fIOPTIONS\\fR] [\\fIARGUMENTS\\fR]\n"        \
	".SH DESCRIPTION\n"                                                                   \
	"An image is a base and a list of steps. Each step runs once, becomes a layer under " \
	"a\nkey, and is kept. Options may stand before or after arguments.\n"                 \
	".SH COMMANDS\n"

#define MANUAL_END                                                                \
	".SH EXIT STATUS\n"                                                       \
	".TP\n.B 0\ndone\n"                                                       \
	".TP\n.B 1\na step's command failed\n"                                    \
	".TP\n.B 64\nthe command line, or a key or value of the spec, is wrong\n" \
	".TP\n.B 65\na step is refused, or input is too large or corrupt\n"       \
	".TP\n.B 66\nnot found\n"                                                 \
	".TP\n.B 69\nthe host or a registry cannot\n"                             \
	".TP\n.B 70\ninternal, or nobody reads the result\n"                      \
	".TP\n.B 74\nthe disk is full\n"                                          \
	".TP\n.B 75\ntry again later\n"                                           \
	".TP\n.B 77\nnot allowed\n"                                               \
	".TP\n.B 130\ncancelled\n"                                                \
	".SH ENVIRONMENT\n"                                                       \
	".TP\n.B HEARTH_DATA\nthe data directory, where \\-\\-data does not say it\n"
/* A dot or quote at a line's start, and backslashes and dashes, mean something to roff. */
static void manual_text(const char *text, FILE *out)
{
	bool starts = true;

	for (; *text; text++) {
		if (starts && (*text == '.' || *text == '\''))
			(void)fputs("\\&", out);
		if (*text == '\\')
			(void)fputs("\\e", out);
		else if (*text == '-')
			(void)fputs("\\-", out);
		else
			(void)fputc(*text, out);
		starts = *text == '\n';
	}
}

static void manual_option(const struct cli_option *option, FILE *out)
{
	(void)fputs(".TP\n.B ", out);
	(void)fputs("\\-\\-", out);
	manual_text(option->name, out);
	if (option->value) {
		(void)fputs(" \\fI", out);
		manual_text(option->value, out);
		(void)fputs("\\fR", out);
	}
	(void)fputc('\n', out);
	manual_text(option->help, out);
	(void)fputs(option->repeats ? "; may be given again\n" : "\n", out);
}

/* Lines stay as they are: examples and lists are laid out for a terminal. */
static void manual_command(const struct cli_command *command, FILE *out)
{
	(void)fprintf(out, ".SS hearth %s ", command->name);
	manual_text(command->arguments, out);
	(void)fputs(" [OPTIONS]\n", out);
	manual_text(command->summary, out);
	(void)fputs(".\n", out);
	if (*command->detail) {
		(void)fputs(".PP\n.nf\n", out);
		manual_text(command->detail, out);
		(void)fputs(".fi\n", out);
	}
	for (size_t i = 0; i < command->option_count; i++)
		manual_option(&command->options[i], out);
}

void commands_print_manual(FILE *out)
{
	(void)fputs(MANUAL_START, out);
	for (size_t i = 0; commands[i]; i++)
		manual_command(commands[i], out);
	(void)fputs(MANUAL_END, out);
}
