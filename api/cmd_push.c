/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_push.c - `hearth push`: an image of the store, to a registry. */
#include "api/human.h"
#include "api/lookup.h"
#include "api/progress.h"
#include "api/send.h"
#include "api/settings.h"

struct cmd_push {
	struct cli *cli;
	struct store *store;
	struct progress *progress;
	struct buf canonical; /* where to */
	struct credentials credentials;
	struct digest image;
};

/* Where to, judged before anything is read. */
static int push_name(struct cmd_push *cmd, struct err *err)
{
	const struct cli *cli = cmd->cli;
	struct str text = str_of(cli->args[cli->arg_count - 1]);
	struct str hex;

	if (cli->arg_count == 1 && lookup_hex(text, &hex))
		return err_set(err, ERR_INVALID,
			       "a digest does not say where to; name a registry's reference, too");
	return send_name(text, &cmd->canonical, err);
}

static void push_print(const struct cmd_push *cmd)
{
	char digest[DIGEST_TEXT_MAX];
	json_t *value;

	digest_format(&cmd->image, digest);
	if (!cli_has(cmd->cli, "json")) {
		(void)printf("%s\n", digest);
		return;
	}
	value = json_object();
	(void)json_object_set_new(value, "reference", json_from_str(buf_str(&cmd->canonical)));
	json_set_text(value, "digest", digest);
	human_json(value, stdout);
	json_decref(value);
}

static int push_send(struct cmd_push *cmd, struct err *err)
{
	const struct send send = {.cli = cmd->cli,
				  .store = cmd->store,
				  .progress = cmd->progress,
				  .reference = buf_str(&cmd->canonical),
				  .image = cmd->image,
				  .credentials = &cmd->credentials};

	if (send_image(&send, err) < 0)
		return -1;
	progress_close(steal_ptr(&cmd->progress));
	push_print(cmd);
	return 0;
}

static int push_all(struct cmd_push *cmd, struct err *err)
{
	struct cli *cli = cmd->cli;
	int columns;
	bool terminal = settings_terminal(&columns);

	if (push_name(cmd, err) < 0 || lookup_whole(cli, &cmd->store, &cmd->image, err) < 0 ||
	    access_login(cli, buf_str(&cmd->canonical), &cmd->credentials, err) < 0 ||
	    progress_open(cli_text(cli, "progress"), terminal, columns, cli->cancel, &cmd->progress,
			  err) < 0)
		return err_ctx(err, "push %s", cli->args[0]);
	return push_send(cmd, err); /* it says what it pushed */
}

static int run(struct cli *cli, struct err *err)
{
	struct cmd_push cmd = {.cli = cli, .canonical = BUF_INIT(REFERENCE_TEXT_MAX)};
	int result = push_all(&cmd, err);

	progress_close(cmd.progress);
	store_close(cmd.store);
	secret_done(&cmd.credentials.password);
	buf_done(&cmd.canonical);
	return result;
}

static const struct cli_option options[] = {
	{"platform", "OS/ARCH", "the image of this platform alone, and not the index", false},
	PROGRESS_OPTION,
	ACCESS_OPTIONS_REGISTRY,
	ACCESS_OPTIONS_LOGIN,
	CLI_OPTION_JSON,
	CLI_OPTION_DATA,
	CLI_OPTION_HELP,
};

const struct cli_command cli_push = {
	.name = "push",
	.arguments = "IMAGE [REF]",
	.summary = "send an image to a registry, and print its digest",
	.detail =
		"IMAGE is a tag, a digest, or six hex digits or more of its beginning. REF says\n"
		"where it goes, HOST[:PORT]/NAME[:TAG]; without REF the name is IMAGE. What the\n"
		"registry has is not sent. Of an image for several platforms all go if all are\n"
		"here, else the one that is. Credentials are read from Docker's config.json, and\n"
		"its helpers are asked.\n",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.args_min = 1,
	.args_max = 2,
	.run = run,
};
