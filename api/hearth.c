/* SPDX-License-Identifier: Apache-2.0 */
/* hearth.c - the program `hearth`: finds the command, and ends with its code. */
#include "api/commands.h"
#include "api/human.h"
#include "api/job_role.h"
#include "api/outlet.h"
#include "api/process.h"
#include "api/settings.h"
#include "layers/base/json.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static struct cancel main_cancel; /* a signal handler has no other way to reach it */

static void main_on_signal(int number)
{
	(void)number;
	cancel_raise(&main_cancel);
}

static int main_catch_signals(struct err *err)
{
	/* Once: a second ^C ends us at once, and the next bake cleans up. */
	struct sigaction action = {.sa_handler = main_on_signal, .sa_flags = (int)SA_RESETHAND};

	if (cancel_init(&main_cancel, err) < 0)
		return -1;
	if (sigaction(SIGINT, &action, NULL) < 0 || sigaction(SIGTERM, &action, NULL) < 0 ||
	    sigaction(SIGHUP, &action, NULL) < 0 || sigaction(SIGALRM, &action, NULL) < 0)
		return err_os(err, errno, "catch signals");
	return 0;
}

/* What to do about a kind of failure, where its own words do not say it. */
static const char *main_advice(enum err_kind kind)
{
	static const char *const advice[ERR_CANCELLED + 1] = {
		[ERR_STEP] = "mend the command and bake again; the steps above it are cached",
		[ERR_FULL] = "free space there (hearth gc --all in a store) and try again",
		[ERR_UNAUTHORIZED] = "give credentials by hearth login REGISTRY",
		[ERR_REMOTE] = "the registry or the network failed; try again",
		[ERR_TIMEOUT] = "try again, or allow it more time",
	};

	return advice[kind];
}

/* Print the error through an outlet, since nobody may read it (outlet.h). */
static int main_fail(const struct err *err, const struct cancel *cancel)
{
	const char *advice = main_advice(err->kind);
	FILE *out = outlet_open(STDERR_FILENO, cancel);
	/* It may quote an image, a registry or a spec. */
	auto_free char *text = human_text(str_of(err->text));

	(void)fflush(stdout);
	if (out)
		(void)fprintf(out, "hearth: %s\n", text);
	if (out && advice)
		(void)fprintf(out, "hearth: %s\n", advice);
	if (out)
		(void)fclose(out);
	return err_exit_code(err->kind);
}

static int main_unknown(const char *name)
{
	struct err err;

	(void)commands_refuse(name, &err);
	return main_fail(&err, NULL);
}

static int main_flush(int code)
{
	struct err err;

	if (fflush(stdout) == 0 || code != 0)
		return code;
	(void)err_os(&err, errno, "write standard output");
	err.kind = ERR_OS; /* that disk is full, and not the data directory's */
	return main_fail(&err, NULL);
}

static int main_do(struct cli *cli, int argc, char **argv, struct err *err)
{
	if (main_catch_signals(err) < 0 || cli_parse(cli, argc, argv, err) < 0)
		return -1;
	if (cli_has(cli, "help")) {
		cli_print_help(cli->command, stdout);
		return 0;
	}
	if (!cli->command->alone && settings_load(cli, err) < 0)
		return -1;
	return cli->command->run(cli, err);
}

static int main_run(const struct cli_command *command, int argc, char **argv)
{
	struct cli cli = {.command = command, .cancel = &main_cancel};
	struct err err = {0};
	int code = 0;

	if (main_do(&cli, argc, argv, &err) < 0)
		code = main_fail(&err, &main_cancel);
	cli_done(&cli);
	cancel_done(&main_cancel);
	return main_flush(code);
}

/* `hearth help [COMMAND]`, in all its spellings. */
static int main_help_for(const char *name)
{
	const struct cli_command *command = name ? commands_find(name) : NULL;

	if (name && !command)
		return main_unknown(name);
	if (name)
		cli_print_help(command, stdout);
	else
		commands_print_help(stdout);
	return main_flush(0);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;
	const struct cli_command *command;
	struct err err;

	if (process_begin(&err) < 0)
		return main_fail(&err, NULL);
	json_wipe_released(); /* a password passes through documents */
	if (!name) {
		commands_print_help(stderr);
		return err_exit_code(ERR_INVALID);
	}
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
		return main_help_for(argc > 2 ? argv[2] : NULL);
	if (strcmp(name, "--version") == 0 || strcmp(name, "version") == 0) {
		(void)printf("hearth %s\n", HEARTH_VERSION);
		return main_flush(0);
	}
	if (strcmp(name, "role") == 0)
		return job_role_run(argc - 2, argv + 2);
	command = commands_find(name);
	return command ? main_run(command, argc - 2, argv + 2) : main_unknown(name);
}
