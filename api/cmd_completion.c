/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_completion.c - `hearth completion` and `hearth manual`: texts made for
 * shells and for man(1).
 */
#include "api/commands.h"

#include <string.h>

static int run_completion(struct cli *cli, struct err *err)
{
	if (strcmp(cli->args[0], "bash") != 0)
		return err_set(err, ERR_INVALID, "completion for %s: there is one for bash",
			       cli->args[0]);
	commands_print_completion(stdout);
	return 0;
}

static int run_manual(struct cli *cli, struct err *err)
{
	(void)cli;
	(void)err;
	commands_print_manual(stdout);
	return 0;
}

static const struct cli_option options[] = {CLI_OPTION_HELP};

const struct cli_command cli_completion = {
	.name = "completion",
	.arguments = "bash",
	.summary = "print a script that completes commands and options",
	.detail = "For this shell: . <(hearth completion bash)\n",
	.options = options,
	.option_count = 1,
	.args_min = 1,
	.args_max = 1,
	.alone = true,
	.run = run_completion,
};

const struct cli_command cli_manual = {
	.name = "manual",
	.arguments = "",
	.summary = "print the manual page",
	.detail = "To read it: hearth manual | man -l -\n",
	.options = options,
	.option_count = 1,
	.args_min = 0,
	.args_max = 0,
	.alone = true,
	.run = run_manual,
};
