/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_pull.c - `hearth pull`: an image from a registry or a layout, into the store. */
#include "api/access.h"
#include "api/cli.h"
#include "api/fetch.h"
#include "api/human.h"
#include "api/lookup.h"
#include "api/progress.h"
#include "api/registries.h"
#include "api/settings.h"
#include "registry/holding.h"

static void pull_print(const struct cli *cli, const json_t *answer)
{
	if (cli_has(cli, "json")) {
		human_json(answer, stdout);
		return;
	}
	(void)printf("%s\n", json_string_value(json_object_get(answer, "manifest")));
}

/* The canonical name is what is tagged. */
static int pull_request(const struct cli *cli, struct buf *canonical,
			struct credentials *credentials, struct registries *registries,
			struct base_request *out, struct err *err)
{
	const char *platform = cli_text(cli, "platform");
	struct reference reference;

	platform_host(&out->platform);
	if (reference_parse(str_of(cli->args[0]), &reference, err) < 0 ||
	    reference_format(&reference, canonical, err) < 0 ||
	    access_login(cli, str_of(cli->args[0]), credentials, err) < 0 ||
	    registries_open(cli, str_of(cli->args[0]), registries, err) < 0 ||
	    access_layer_limit(cli, &out->max_layer_bytes, err) < 0)
		return -1;
	if (reference.kind == REFERENCE_SCRATCH)
		return err_set(err, ERR_INVALID, "scratch is nothing; there is nothing to pull");
	if (str_starts(buf_str(canonical), STR(HOLDING_HOST "/")))
		return err_set(err, ERR_INVALID,
			       "it is a name of this store, and of no registry: hearth images "
			       "lists what is here");
	if (platform && platform_parse(str_of(platform), &out->platform, err) < 0)
		return err_ctx(err, "--platform");
	out->reference = buf_str(canonical);
	out->plain_http = cli_has(cli, "plain-http");
	out->ca_file = cli_text(cli, "ca-file");
	out->user = str_of(credentials->user);
	out->password = &credentials->password;
	out->places = &registries->places;
	return 0;
}

static int run(struct cli *cli, struct err *err)
{
	auto_buf struct buf canonical = BUF_INIT(REFERENCE_TEXT_MAX);
	AUTO(store) struct store *store = NULL;
	AUTO(progress) struct progress *progress = NULL;
	struct base_request request = {0};
	auto_credentials struct credentials credentials = {0};
	auto_registries struct registries registries = {0};
	AUTO(json) json_t *answer = NULL;
	int columns;
	bool terminal = settings_terminal(&columns);

	if (pull_request(cli, &canonical, &credentials, &registries, &request, err) < 0 ||
	    progress_open(cli_text(cli, "progress"), terminal, columns, cli->cancel, &progress,
			  err) < 0 ||
	    cli_open_store(cli, &store, err) < 0)
		return err_ctx(err, "pull %s", cli->args[0]);
	if (fetch_image(cli, store, progress, &request, &answer, err) < 0)
		return -1; /* it says what it pulled */
	pull_print(cli, answer);
	return 0;
}

static const struct cli_option options[] = {
	LOOKUP_OPTION_PLATFORM, PROGRESS_OPTION, ACCESS_OPTIONS,  ACCESS_OPTIONS_LOGIN,
	CLI_OPTION_JSON,        CLI_OPTION_DATA, CLI_OPTION_HELP,
};

const struct cli_command cli_pull = {
	.name = "pull",
	.arguments = "REF",
	.summary = "fetch an image, and print its digest",
	.detail =
		"REF is [HOST[:PORT]/]NAME[:TAG][@DIGEST], or a place as hearth import knows it.\n"
		"Credentials are read from Docker's config.json, and its helpers are asked.\n",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.args_min = 1,
	.args_max = 1,
	.run = run,
};
