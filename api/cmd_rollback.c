/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_rollback.c - `hearth rollback`: the image before the last rebake serves again. */
#include "api/await.h"
#include "api/human.h"

static int run(struct cli *cli, struct err *err)
{
	AUTO(json) json_t *args = json_object();
	AUTO(json) json_t *status = NULL;
	const struct call_spec spec = {.method = "agents.rollback", .args = args};

	(void)json_object_set_new(args, "id", json_from_str(str_of(cli->args[0])));
	if (call_daemon(cli, &spec, &status, err) < 0)
		return err_ctx(err, "rollback %s", cli->args[0]);
	if (cli_has(cli, "json"))
		human_json(status, stdout);
	else
		(void)printf("%s\n", await_text(status, "digest"));
	return 0;
}

static const struct cli_option options[] = {
	CLI_OPTION_JSON,
	CLI_OPTION_DATA,
	CLI_OPTION_HELP,
};

const struct cli_command cli_rollback = {
	.name = "rollback",
	.arguments = "AGENT",
	.summary = "undo an agent's last rebake, and print the digest of its image",
	.detail = "",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.args_min = 1,
	.args_max = 1,
	.run = run,
};
