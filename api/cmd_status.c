/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_status.c - `hearth status`: the agents, and where the image of one is. */
#include "api/await.h"
#include "api/human.h"
#include "api/page_option.h"
#include "layers/base/clock.h"
#include "layers/digest.h"

#include <string.h>
#include <unistd.h>

#define STATUS_NAME_MIN 24
#define STATUS_ROW "%-*s %-8s %-9s %-12.12s  %s\n"

static int status_read_version(const struct cli *cli, int64_t *out, struct err *err)
{
	const char *text = cli_text(cli, "version");
	size_t version = 0;

	if (text && cli_read_step("--version", text, &version, err) < 0)
		return -1;
	*out = (int64_t)version;
	return 0;
}

/* "  baked      2026-01-31T12:00:00.000Z, 5 minutes ago" */
static void status_print_time(const char *title, const char *text)
{
	char age[HUMAN_TEXT_MAX];
	struct err ignored;
	int64_t ms;

	if (clock_parse(str_of(text), &ms, &ignored) == 0)
		(void)printf("  %-10s %s, %s\n", title, text, human_age(clock_now_ms() - ms, age));
}

static void status_print_image(const char *title, const json_t *image)
{
	char size[HUMAN_TEXT_MAX];
	json_int_t bytes = json_integer_value(json_object_get(image, "sizeBytes"));

	if (json_object_get(image, "digest"))
		(void)printf("  %-10s %s, %s\n", title, await_text(image, "digest"),
			     human_size((uint64_t)bytes, size));
}

static void status_print_fault(const char *title, const json_t *fault)
{
	auto_free char *message = human_text(str_of(await_text(fault, "message")));

	if (fault)
		(void)printf("  %-10s %s: %s\n", title, await_text(fault, "code"), message);
}

static void status_print_rebake(const json_t *rebake)
{
	if (!rebake)
		return;
	(void)printf("  %-10s %s, %s\n", "rebake", await_text(rebake, "status"),
		     await_text(rebake, "bakeId"));
	status_print_fault("", json_object_get(rebake, "error"));
}

static void status_print_pushes(const json_t *pushes)
{
	const json_t *push;
	size_t i;

	json_array_foreach(pushes, i, push)
	{
		auto_free char *reference = human_text(str_of(await_text(push, "reference")));

		(void)printf("  %-10s %s to %s\n", i == 0 ? "push" : "", await_text(push, "status"),
			     reference);
		status_print_fault("", json_object_get(push, "error"));
	}
}

/* Its first line is left out where a terminal has just been told it. */
static void status_print(const json_t *status, const char *told)
{
	auto_free char *line = await_line(status);

	if (!told || strcmp(told, line) != 0 || !isatty(STDERR_FILENO) || !isatty(STDOUT_FILENO))
		(void)printf("%s\n", line);
	status_print_image("image", status);
	status_print_time("started", await_text(status, "startedAt"));
	status_print_time("finished", await_text(status, "finishedAt"));
	status_print_fault("error", json_object_get(status, "error"));
	status_print_rebake(json_object_get(status, "rebake"));
	status_print_image("previous", json_object_get(status, "previous"));
	status_print_pushes(json_object_get(status, "pushes"));
}

/* Each answer, until somebody cancels. */
static int status_watch(const struct cli *cli, struct await *await, struct err *err)
{
	await->silent = true;
	while (await_change(await, err) == 0) {
		auto_free char *line = await_line(await->status);

		if (cli_has(cli, "json"))
			human_json(await->status, stdout);
		else
			(void)printf("%s\n", line);
		if (fflush(stdout) != 0)
			return err_os(err, errno, "write standard output");
	}
	return -1;
}

/* When it was finished, or begun; "-" for what was never baked. */
static const char *status_age(const json_t *status, char age[static HUMAN_TEXT_MAX])
{
	const char *text = await_text(status, "finishedAt");
	struct err ignored;
	int64_t ms;

	if (!*text)
		text = await_text(status, "startedAt");
	if (clock_parse(str_of(text), &ms, &ignored) < 0)
		return "-";
	return human_age(clock_now_ms() - ms, age);
}

static void status_print_row(const json_t *status, int width)
{
	struct digest digest;
	char version[HUMAN_TEXT_MAX];
	char hex[DIGEST_HEX_MAX] = "-";
	char age[HUMAN_TEXT_MAX];
	struct err ignored;

	if (digest_parse(str_of(await_text(status, "digest")), &digest, &ignored) == 0)
		(void)digest_hex(&digest, hex);
	(void)snprintf(version, sizeof(version), "%lld",
		       (long long)json_integer_value(json_object_get(status, "version")));
	(void)printf(STATUS_ROW, width, await_text(status, "slug"), version,
		     await_text(status, "status"), hex, status_age(status, age));
}

static void status_print_rows(const json_t *items)
{
	int width = STATUS_NAME_MIN;
	const json_t *status;
	size_t i;

	json_array_foreach(items, i, status) width = human_widen(width, await_text(status, "slug"));
	if (json_array_size(items) > 0)
		(void)printf(STATUS_ROW, width, "AGENT", "VERSION", "STATUS", "DIGEST", "WHEN");
	json_array_foreach(items, i, status) status_print_row(status, width);
}

/* In the place of each agent of the page its status. */
static int status_take_each(json_t *agents, struct err *err)
{
	for (size_t i = 0; i < json_array_size(agents); i++) {
		json_t *status;

		if (json_need_object(json_array_get(agents, i), "items", "imageStatus", &status,
				     err) < 0)
			return -1;
		(void)json_array_set(agents, i, status);
	}
	return 0;
}

static int status_list(const struct cli *cli, struct err *err)
{
	AUTO(json) json_t *args = json_object();
	AUTO(json) json_t *page = NULL;
	const struct call_spec spec = {.method = "agents.list", .args = args};
	json_t *items;

	if (cli_has(cli, "wait") || cli_has(cli, "watch") || cli_has(cli, "version"))
		return err_set(err, ERR_INVALID,
			       "--wait, --watch and --version: name the agent that is meant");
	json_set_bool(args, "imageStatus", true);
	if (page_option_read(cli, NULL, args, err) < 0 || call_daemon(cli, &spec, &page, err) < 0)
		return -1;
	items = json_object_get(page, "items");
	if (status_take_each(items, err) < 0)
		return -1;
	if (cli_has(cli, "json")) {
		human_json(page, stdout);
		return 0;
	}
	status_print_rows(items);
	page_option_print_next(page);
	return 0;
}

/* How one agent's image is: the result says so, too. */
static int status_show(const struct cli *cli, struct err *err)
{
	auto_await struct await await = {.cli = cli, .agent = cli->args[0]};
	int result;

	if (status_read_version(cli, &await.version, err) < 0)
		return -1;
	if (cli_has(cli, "watch"))
		return status_watch(cli, &await, err);
	result = cli_has(cli, "wait") ? await_settled(&await, err) : await_ask(&await, 0, err);
	if (result < 0)
		return -1;
	if (cli_has(cli, "json"))
		human_json(await.status, stdout);
	else
		status_print(await.status, await.told);
	return await_check(await.status, err);
}

static int run(struct cli *cli, struct err *err)
{
	return cli->arg_count == 0 ? status_list(cli, err) : status_show(cli, err);
}

static const struct cli_option options[] = {
	{"wait", NULL, "wait until nothing is under way", false},
	{"watch", NULL, "print each change, until it is interrupted", false},
	{"version", "N", "of this version; of the latest by default", false},
	PAGE_OPTIONS,
	CLI_OPTION_JSON,
	CLI_OPTION_DATA,
	CLI_OPTION_HELP,
};

const struct cli_command cli_status = {
	.name = "status",
	.arguments = "[AGENT]",
	.summary = "list the agents, or show where one's image is; it builds nothing",
	.detail = "AGENT is a slug or an id. It ends with 0 when its image is ready or none is\n"
		  "wanted, with 75 while it is being baked, and with the code of what failed.\n"
		  "Without one all are listed, newest first, each with its latest version.\n",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.args_min = 0,
	.args_max = 1,
	.run = run,
};
