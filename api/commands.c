/* SPDX-License-Identifier: Apache-2.0 */
#include "api/commands.h"

#include "layers/base/nearest.h"

#include <string.h>

#define COMMANDS_COLUMN 12 /* where the summaries start */

const struct cli_command *const commands[] = {
	&cli_bake,    &cli_pull,     &cli_push,    &cli_login,      &cli_logout, &cli_import,
	&cli_export,  &cli_copy,     &cli_tag,     &cli_images,     &cli_ls,     &cli_tags,
	&cli_inspect, &cli_history,  &cli_logs,    &cli_why,        &cli_gc,     &cli_rm,
	&cli_du,      &cli_fsck,     &cli_context, &cli_serve,      &cli_sync,   &cli_status,
	&cli_rebake,  &cli_rollback, &cli_bakes,   &cli_sessions,   &cli_events, &cli_mirror,
	&cli_token,   &cli_call,     &cli_doctor,  &cli_completion, &cli_manual, NULL,
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]) - 1)

const struct cli_command *commands_find(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++) {
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	}
	return NULL;
}

int commands_refuse(const char *name, struct err *err)
{
	const char *names[COMMANDS];
	char hint[NEAREST_HINT_MAX];

	for (size_t i = 0; i < COMMANDS; i++)
		names[i] = commands[i]->name;
	return err_set(err, ERR_INVALID, "there is no command %s%s; see hearth --help", name,
		       nearest_hint(str_of(name), names, COMMANDS, hint));
}

void commands_print_help(FILE *out)
{
	(void)fprintf(out, "hearth COMMAND [OPTIONS]\n\n"
			   "Bakes container images from a base and steps; each step runs once.\n\n"
			   "Commands:\n");
	for (size_t i = 0; i < COMMANDS; i++)
		(void)fprintf(out, "  %-*s%s\n", COMMANDS_COLUMN, commands[i]->name,
			      commands[i]->summary);
	(void)fprintf(out, "\nhearth COMMAND --help explains a command; hearth --version prints "
			   "the version.\n");
}
