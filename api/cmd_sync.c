/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_sync.c - `hearth sync`: an agent's spec becomes a version, and its image is baked. */
#include "api/await.h"
#include "api/context_arg.h"
#include "api/context_place.h"
#include "api/human.h"
#include "api/input.h"
#include "bake/agent.h"
#include "layers/digest_json.h"

#include <string.h>

/* The agent's image as the spec has it, borrowed; NULL where it has none. */
static json_t *sync_image(const json_t *spec)
{
	const json_t *wrapped = json_object_get(spec, "agent");
	const json_t *sandbox = json_object_get(wrapped ? wrapped : spec, "sandbox");

	return json_object_get(sandbox, "image");
}

/* The daemon takes a digest: of a directory or a tar that is stored there first. */
static int sync_put_context(const struct cli *cli, const char *text, json_t *image, struct err *err)
{
	struct digest digest;

	if (context_place(cli, text, &digest, err) < 0)
		return -1;
	digest_json_set(image, "context", &digest);
	return 0;
}

/* --context, or the directory that the spec names, which is relative to its file. */
static int sync_place_context(const struct cli *cli, json_t *spec, struct err *err)
{
	json_t *image = sync_image(spec);
	const json_t *named = json_object_get(image, "context");
	const char *given = cli_text(cli, "context");
	auto_free char *text = NULL;

	if (given && !json_is_object(image))
		return err_set(err, ERR_INVALID,
			       "--context is given, and the agent has no sandbox.image");
	if (given)
		text = str_dup(str_of(given));
	else if (json_is_string(named))
		text = context_arg_beside(cli->args[0], json_str(named));
	if (!text)
		return 0;
	if (context_arg_is_digest(text)) {
		(void)json_object_set_new(image, "context", json_from_str(str_of(text)));
		return 0;
	}
	if (strcmp(text, "-") == 0 && strcmp(cli->args[0], "-") == 0)
		return err_set(err, ERR_INVALID,
			       "the spec and its context cannot both be standard input");
	return sync_put_context(cli, text, image, err) < 0 ? err_ctx(err, "context %s", text) : 0;
}

static int sync_read(const struct cli *cli, json_t **out, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(AGENT_SPEC_MAX);

	if (input_read("spec", cli->args[0], cli->cancel, &text, err) < 0)
		return -1;
	if (json_parse(buf_str(&text), AGENT_SPEC_MAX, out, err) < 0)
		return err_ctx(err, "spec %s", cli->args[0]);
	if (!json_is_object(*out))
		return err_set(err, ERR_INVALID, "spec %s: expected an object", cli->args[0]);
	return 0;
}

static void sync_warn(const json_t *synced)
{
	const json_t *warnings = json_object_get(synced, "warnings");

	for (size_t i = 0; i < json_array_size(warnings); i++) {
		const char *text = json_string_value(json_array_get(warnings, i));
		auto_free char *shown = human_text(str_of(text ? text : ""));

		(void)fprintf(stderr, "hearth: warning: %s\n", shown);
	}
}

/* To standard error where a digest is to follow. */
static void sync_print(const json_t *synced, FILE *out)
{
	(void)fprintf(out, "%s version %lld %s, its image is %s\n", await_text(synced, "slug"),
		      (long long)json_integer_value(json_object_get(synced, "version")),
		      json_is_true(json_object_get(synced, "appended")) ? "is new" : "was there",
		      await_text(synced, "status"));
}

static int sync_wait(const struct cli *cli, json_t *synced, struct err *err)
{
	auto_await struct await await = {
		.cli = cli,
		.agent = await_text(synced, "id"),
		.version = json_integer_value(json_object_get(synced, "version")),
	};

	if (!cli_has(cli, "json"))
		sync_print(synced, stderr);
	if (await_settled(&await, err) < 0)
		return -1;
	(void)json_object_set_new(synced, "status",
				  json_string(await_text(await.status, "status")));
	(void)json_object_set(synced, "image", await.status);
	if (cli_has(cli, "json"))
		human_json(synced, stdout);
	else if (*await_text(await.status, "digest"))
		(void)printf("%s\n", await_text(await.status, "digest"));
	return await_check(await.status, err);
}

static int run(struct cli *cli, struct err *err)
{
	AUTO(json) json_t *spec = NULL;
	AUTO(json) json_t *synced = NULL;
	struct call_spec call = {.method = "agents.sync"};

	if (sync_read(cli, &spec, err) < 0 || sync_place_context(cli, spec, err) < 0)
		return -1;
	call.args = spec;
	if (call_daemon(cli, &call, &synced, err) < 0)
		return err_ctx(err, "spec %s", cli->args[0]);
	sync_warn(synced);
	if (cli_has(cli, "wait"))
		return sync_wait(cli, synced, err);
	if (cli_has(cli, "json"))
		human_json(synced, stdout);
	else
		sync_print(synced, stdout);
	return 0;
}

static const struct cli_option options[] = {
	{"wait", NULL, "wait until the image is ready, and print its digest last", false},
	{"context", "DIR|TAR|-|DIGEST", "what COPY reads, instead of the spec's", false},
	CLI_OPTION_JSON,
	CLI_OPTION_DATA,
	CLI_OPTION_HELP,
};

const struct cli_command cli_sync = {
	.name = "sync",
	.arguments = "SPEC",
	.summary = "give the daemon an agent's spec; it bakes the image behind it",
	.detail =
		"SPEC is a JSON file of the agent, or - for standard input. Where it differs from\n"
		"the latest version a new one is appended; the same again appends none. Its\n"
		"context is a directory relative to the file, which is packed and stored.\n",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.args_min = 1,
	.args_max = 1,
	.run = run,
};
