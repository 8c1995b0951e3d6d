/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_bakes.c - `hearth bakes`: what the daemon bakes, has baked, and is to stop. */
#include "api/await.h"
#include "api/human.h"
#include "api/page_option.h"
#include "layers/base/clock.h"

#include <string.h>

static void bakes_print_row(const json_t *bake)
{
	char age[HUMAN_TEXT_MAX] = "-";
	auto_free char *name = NULL;
	struct err ignored;
	int64_t ms;

	if (clock_parse(str_of(await_text(bake, "createdAt")), &ms, &ignored) == 0)
		(void)human_age(clock_now_ms() - ms, age);
	if (asprintf(&name, "%s:%lld", await_text(bake, "slug"),
		     (long long)json_integer_value(json_object_get(bake, "version"))) < 0)
		abort();
	(void)printf("%-30s  %-24s %-9s  %-6s  %s\n", await_text(bake, "id"), name,
		     await_text(bake, "state"),
		     json_is_true(json_object_get(bake, "rebake")) ? "rebake" : "bake", age);
}

static void bakes_print(const json_t *page)
{
	const json_t *items = json_object_get(page, "items");

	if (json_array_size(items) > 0)
		(void)printf("%-30s  %-24s %-9s  %-6s  %s\n", "ID", "VERSION", "STATE", "KIND",
			     "ASKED FOR");
	for (size_t i = 0; i < json_array_size(items); i++)
		bakes_print_row(json_array_get(items, i));
	page_option_print_next(page);
}

static int bakes_list(const struct cli *cli, struct err *err)
{
	AUTO(json) json_t *args = json_object();
	AUTO(json) json_t *page = NULL;
	const struct call_spec spec = {.method = "bakes.list", .args = args};

	if (page_option_read(cli, cli->arg_count > 0 ? cli->args[0] : NULL, args, err) < 0 ||
	    call_daemon(cli, &spec, &page, err) < 0)
		return -1;
	if (cli_has(cli, "json"))
		human_json(page, stdout);
	else
		bakes_print(page);
	return 0;
}

static int bakes_cancel(const struct cli *cli, struct err *err)
{
	AUTO(json) json_t *args = json_object();
	AUTO(json) json_t *bake = NULL;
	const struct call_spec spec = {.method = "bakes.cancel", .args = args};

	if (strcmp(cli->args[0], "cancel") != 0)
		return err_set(err, ERR_INVALID,
			       "bakes %s: expected bakes [AGENT] or bakes cancel BAKE",
			       cli->args[0]);
	(void)json_object_set_new(args, "id", json_from_str(str_of(cli->args[1])));
	if (call_daemon(cli, &spec, &bake, err) < 0)
		return -1;
	if (cli_has(cli, "json"))
		human_json(bake, stdout);
	else
		bakes_print_row(bake);
	return 0;
}

static int run(struct cli *cli, struct err *err)
{
	return cli->arg_count == 2 ? bakes_cancel(cli, err) : bakes_list(cli, err);
}

static const struct cli_option options[] = {
	PAGE_OPTIONS,
	CLI_OPTION_JSON,
	CLI_OPTION_DATA,
	CLI_OPTION_HELP,
};

const struct cli_command cli_bakes = {
	.name = "bakes",
	.arguments = "[AGENT] | cancel BAKE",
	.summary = "list the daemon's bakes, of all agents or of one; or cancel one",
	.detail = "What is cancelled while it runs says so until it has stopped. What its agent\n"
		  "served before it serves on.\n",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.args_min = 0,
	.args_max = 2,
	.run = run,
};
