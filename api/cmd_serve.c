/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_serve.c - `hearth serve`: become the daemon.
 *
 * The daemon is a program of its own, since it loads what no command needs. It
 * reads the same options once more, so that what it is asked for has one form.
 */
#include "api/cli.h"
#include "api/listen.h"

#include <string.h>

struct words {
	const char **at; /* owned array, borrowed words; room for all, and NULL */
	size_t count;
};

static void serve_add_option(const struct cli *cli, const struct cli_option *option,
			     struct words *words)
{
	struct cli_value values = cli_list(cli, option->name);

	for (size_t i = 0; i < values.count; i++) {
		char *dashed;

		if (asprintf(&dashed, "--%s", option->name) < 0)
			abort();
		words->at[words->count++] = dashed;
		if (option->value)
			words->at[words->count++] = values.at[i];
	}
}

static int run(struct cli *cli, struct err *err)
{
	struct words words = {
		.at = calloc(2 * (CLI_OPTIONS_MAX * CLI_REPEAT_MAX) + 2, sizeof(*words.at))};

	if (!words.at)
		abort();
	words.at[words.count++] = "hearth-daemon";
	for (size_t i = 0; i < cli->command->option_count; i++)
		serve_add_option(cli, &cli->command->options[i], &words);
	(void)execv(cli->daemon_path, drop_const(words.at));
	(void)err_os(err, errno, "start %s", cli->daemon_path);
	free(words.at);
	return -1;
}

static const struct cli_option options[] = {
	{"listen", "HOST:PORT",
	 "the address to listen on; port 0 is any free one; " LISTEN_DEFAULT
	 " where the configuration has none",
	 false},
	{"host", "NAME",
	 "a name that requests may have as their Host, beside localhost and addresses; a file as "
	 "examples/mirror/hosts.toml may have it, too",
	 true},
	{"grace", "SECONDS", "when it is told to stop, wait so long for requests; 30 by default",
	 false},
	CLI_OPTION_DATA,
	CLI_OPTION_HELP,
};

const struct cli_command cli_serve = {
	.name = "serve",
	.arguments = "",
	.summary = "run the daemon: answer requests until it is told to stop",
	.detail =
		"It is found on its address, by HTTP or, with `tls` in the configuration, HTTPS;\n"
		"and on run/hearth.sock in the data directory. Every request but /healthz and\n"
		"/readyz needs a token: admin.token in the data directory is one, and\n"
		"hearth token create makes more. SIGTERM ends it.\n",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.args_min = 0,
	.args_max = 0,
	.run = run,
};
