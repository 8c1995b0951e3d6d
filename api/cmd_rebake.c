/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_rebake.c - `hearth rebake`: an agent's latest image, baked anew. */
#include "api/await.h"
#include "api/human.h"

#include <string.h>

static int rebake_ask(const struct cli *cli, json_t **out, struct err *err)
{
	AUTO(json) json_t *args = json_object();
	const struct call_spec spec = {.method = "agents.rebake", .args = args};
	const char *text = cli_text(cli, "from-step");
	size_t step;

	(void)json_object_set_new(args, "id", json_from_str(str_of(cli->args[0])));
	if (text && cli_read_step("--from-step", text, &step, err) < 0)
		return -1;
	if (text)
		(void)json_object_set_new(args, "fromStep", json_integer((json_int_t)step));
	return call_daemon(cli, &spec, out, err);
}

static bool rebake_is_open(const json_t *bake)
{
	static const char *const open[] = {"queued", "running", "waiting"};
	const char *state = await_text(bake, "state");

	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++) {
		if (strcmp(state, open[i]) == 0)
			return true;
	}
	return false;
}

static int rebake_read(const struct cli *cli, const char *id, json_t **out, struct err *err)
{
	AUTO(json) json_t *args = json_pack("{s:s}", "id", id);
	const struct call_spec spec = {.method = "bakes.get", .args = args};

	json_decref(*out);
	*out = NULL;
	return call_daemon(cli, &spec, out, err);
}

/* Wait for this very bake, whatever else happens to the agent. */
static int rebake_wait(const struct cli *cli, const char *id, json_t **bake, struct err *err)
{
	auto_await struct await await = {.cli = cli, .agent = cli->args[0]};

	if (rebake_read(cli, id, bake, err) < 0)
		return -1;
	await.version = json_integer_value(json_object_get(*bake, "version"));
	while (rebake_is_open(*bake)) {
		if (await_change(&await, err) < 0 || rebake_read(cli, id, bake, err) < 0)
			return -1;
	}
	return 0;
}

static int rebake_check(const json_t *bake, struct err *err)
{
	const char *state = await_text(bake, "state");

	if (strcmp(state, "failed") == 0)
		return await_fail(json_object_get(bake, "error"), err);
	if (strcmp(state, "cancelled") == 0)
		return err_set(err, ERR_CANCELLED, "%s was cancelled", await_text(bake, "id"));
	return 0;
}

/* What was baked: the digest last, as of hearth bake. */
static void rebake_print(const struct cli *cli, const json_t *bake)
{
	if (cli_has(cli, "json")) {
		human_json(bake, stdout);
		return;
	}
	(void)fprintf(stderr, "%s %s\n", await_text(bake, "id"), await_text(bake, "state"));
	if (*await_text(bake, "digest"))
		(void)printf("%s\n", await_text(bake, "digest"));
}

static int rebake_run(const struct cli *cli, struct err *err)
{
	AUTO(json) json_t *ticket = NULL;
	AUTO(json) json_t *bake = NULL;
	const char *id;

	if (rebake_ask(cli, &ticket, err) < 0)
		return -1;
	id = await_text(ticket, "bakeId");
	if (json_is_true(json_object_get(ticket, "joined")))
		(void)fprintf(stderr, "%s was asked for before, and is not done\n", id);
	if (cli_has(cli, "wait")) {
		if (rebake_wait(cli, id, &bake, err) < 0)
			return -1;
		rebake_print(cli, bake);
		return rebake_check(bake, err);
	}
	if (cli_has(cli, "json"))
		human_json(ticket, stdout);
	else
		(void)printf("%s\n", id);
	return 0;
}

static int run(struct cli *cli, struct err *err)
{
	return rebake_run(cli, err) < 0 ? err_ctx(err, "rebake %s", cli->args[0]) : 0;
}

static const struct cli_option options[] = {
	{"wait", NULL, "wait until it is done, and exit as it did", false},
	{"from-step", "N", "run steps anew from this one on; earlier ones may be cached", false},
	CLI_OPTION_JSON,
	CLI_OPTION_DATA,
	CLI_OPTION_HELP,
};

const struct cli_command cli_rebake = {
	.name = "rebake",
	.arguments = "AGENT",
	.summary = "bake an agent's latest image again, on a base resolved again",
	.detail = "No version is appended. The old image serves until the new one is ready, and\n"
		  "stays if the rebake fails. A rebake that was asked for before and is not done\n"
		  "is joined. The bake's id is printed, or with --wait the image's digest.\n",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.args_min = 1,
	.args_max = 1,
	.run = run,
};
