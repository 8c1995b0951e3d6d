/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_call.c - `hearth call`: any method of the daemon, for scripts. */
#include "api/call.h"
#include "api/human.h"

static void call_print(void *ctx, struct str bytes)
{
	(void)ctx;
	(void)fwrite(bytes.ptr, 1, bytes.len, stdout);
	(void)fflush(stdout);
}

static int run(struct cli *cli, struct err *err)
{
	const char *text = cli->arg_count > 1 ? cli->args[1] : "{}";
	AUTO(json) json_t *args = NULL;
	AUTO(json) json_t *answer = NULL;
	struct call_spec spec = {.method = cli->args[0],
				 .heard = cli_has(cli, "raw") ? call_print : NULL};

	if (json_parse(str_of(text), WIRE_PAYLOAD_MAX, &args, err) < 0)
		return err_ctx(err, "the arguments");
	if (!json_is_object(args))
		return err_set(err, ERR_INVALID, "the arguments: expected an object");
	spec.args = args;
	if (call_daemon(cli, &spec, &answer, err) < 0)
		return err_ctx(err, "call %s", spec.method);
	if (!spec.heard)
		human_json(answer, stdout);
	return 0;
}

static const struct cli_option options[] = {
	{"raw", NULL, "print the answer as it comes, whatever it is: for streams", false},
	CLI_OPTION_DATA,
	CLI_OPTION_HELP,
};

const struct cli_command cli_call = {
	.name = "call",
	.arguments = "METHOD [JSON]",
	.summary = "call a method of the daemon, and print its answer as JSON",
	.detail = "JSON is an object of the method's arguments. The daemon is that of HEARTH_URL,\n"
		  "with the token of HEARTH_TOKEN; else the one that serves the data directory.\n"
		  "\n"
		  "Methods:\n"
		  "  agents.sync agents.get agents.list agents.versions agents.imageStatus\n"
		  "  agents.rebake agents.rollback\n"
		  "  bakes.get bakes.list bakes.logs bakes.cancel\n"
		  "  sessions.create sessions.get sessions.list sessions.end\n"
		  "  contexts.put events.stream server.info mirror.status mirror.warm\n"
		  "  tools.call\n"
		  "  tokens.create tokens.list tokens.revoke\n",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.args_min = 1,
	.args_max = 2,
	.run = run,
};
