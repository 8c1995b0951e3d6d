/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_context.c - `hearth context put`: what COPY will read, into the store. */
#include "api/context_place.h"
#include "api/human.h"

#include <string.h>

static void context_print(const struct cli *cli, const struct digest *digest)
{
	char text[DIGEST_TEXT_MAX];
	AUTO(json) json_t *value = NULL;

	digest_format(digest, text);
	if (!cli_has(cli, "json")) {
		(void)printf("%s\n", text);
		return;
	}
	value = json_object();
	json_set_text(value, "digest", text);
	human_json(value, stdout);
}

static int run(struct cli *cli, struct err *err)
{
	struct digest digest;

	if (strcmp(cli->args[0], "put") != 0)
		return err_set(err, ERR_INVALID, "context %s: expected context put DIR|TAR|-",
			       cli->args[0]);
	if (context_place(cli, cli->args[1], &digest, err) < 0)
		return err_ctx(err, "context put %s", cli->args[1]);
	context_print(cli, &digest);
	return 0;
}

static const struct cli_option options[] = {
	CLI_OPTION_JSON,
	CLI_OPTION_DATA,
	CLI_OPTION_HELP,
};

const struct cli_command cli_context = {
	.name = "context",
	.arguments = "put DIR|TAR|-",
	.summary = "store what COPY reads, and print its digest",
	.detail =
		"The digest can be given to hearth bake --context, on this data directory, and in\n"
		"a spec to the daemon; where HEARTH_URL is set, it goes to that one. DIR is\n"
		"packed without owners and times, in byte order of names, so equal directories\n"
		"have one digest. A TAR may be plain, or in gzip or zstd.\n",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.args_min = 2,
	.args_max = 2,
	.run = run,
};
