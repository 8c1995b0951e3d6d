/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_events.c - `hearth events`: what happened, and what happens. */
#include "api/await.h"
#include "api/human.h"

#include <string.h>

#define EVENTS_LINE_MAX ((size_t)1024 * 1024) /* an event with all of its data, escaped */

struct events {
	const struct cli *cli;
	bool json;
	struct buf line; /* owned: the one that has not ended yet */
	struct err failure;
};

/* What an event is about, and what it says of that. */
static void events_print(const json_t *event)
{
	static const char *const about[] = {"agentId", "bakeId", "sessionId", "sandboxId"};
	const json_t *data = json_object_get(event, "data");
	json_int_t version = json_integer_value(json_object_get(event, "version"));

	(void)printf("%s  %s  %s", await_text(event, "id"), await_text(event, "at"),
		     await_text(event, "type"));
	for (size_t i = 0; i < sizeof(about) / sizeof(about[0]); i++) {
		if (*await_text(event, about[i]))
			(void)printf("  %s", await_text(event, about[i]));
		if (i == 0 && version > 0)
			(void)printf(":%lld", (long long)version);
	}
	(void)printf(json_object_size(data) > 0 ? "  " : "\n");
	if (json_object_size(data) > 0)
		human_json(data, stdout);
}

/* Take a line of server-sent events; the line of the data has all that is needed. */
static int events_take_line(struct events *events, struct str line, struct err *err)
{
	AUTO(json) json_t *event = NULL;

	if (!str_starts(line, STR("data: ")))
		return 0;
	if (json_parse(str_skip(line, 6), EVENTS_LINE_MAX, &event, err) < 0)
		return err_ctx(err, "an event");
	if (events->json)
		human_json(event, stdout);
	else
		events_print(event);
	(void)fflush(stdout);
	return 0;
}

static int events_take(struct events *events, struct str bytes, struct err *err)
{
	const char *end;

	while ((end = memchr(bytes.ptr, '\n', bytes.len)) != NULL) {
		struct str piece = {bytes.ptr, (size_t)(end - bytes.ptr)};

		if (buf_add(&events->line, piece, err) < 0 ||
		    events_take_line(events, buf_str(&events->line), err) < 0)
			return -1;
		buf_clear(&events->line);
		bytes = str_skip(bytes, piece.len + 1);
	}
	return buf_add(&events->line, bytes, err);
}

static void events_hear(void *ctx, struct str bytes)
{
	struct events *events = ctx;

	if (events->failure.kind == ERR_NONE && events_take(events, bytes, &events->failure) < 0)
		cancel_raise(events->cli->cancel);
}

static json_t *events_args(const struct cli *cli)
{
	static const char *const names[][2] = {
		{"agent", "agentId"}, {"session", "sessionId"}, {"type", "type"}};
	const char *after = cli_text(cli, "after");
	json_t *args = json_object();

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *text = cli_text(cli, names[i][0]);

		if (text)
			(void)json_object_set_new(args, names[i][1], json_from_str(str_of(text)));
	}
	/* Without --after: --follow starts with the next event, else with the oldest. */
	if (after || !cli_has(cli, "follow"))
		(void)json_object_set_new(args, "after",
					  json_from_str(str_of(after ? after : "0")));
	(void)json_object_set_new(args, "follow", json_boolean(cli_has(cli, "follow")));
	return args;
}

static int run(struct cli *cli, struct err *err)
{
	AUTO(json) json_t *args = events_args(cli);
	AUTO(json) json_t *nothing = NULL;
	struct events events = {
		.cli = cli,
		.json = cli_has(cli, "json"),
		.line = BUF_INIT(EVENTS_LINE_MAX),
	};
	const struct call_spec spec = {
		.method = "events.stream", .args = args, .heard = events_hear, .ctx = &events};
	int result = call_daemon(cli, &spec, &nothing, err);

	buf_done(&events.line);
	if (events.failure.kind == ERR_NONE)
		return result;
	*err = events.failure;
	return -1;
}

static const struct cli_option options[] = {
	{"follow", NULL, "-f: print what happens from now on, until it is interrupted", false},
	{"after", "ID", "what came behind this event; all that is kept by default", false},
	{"agent", "AGENT", "of this agent alone", false},
	{"session", "SESSION", "of this session alone", false},
	{"type", "TYPE", "of this type alone, as in image.ready", false},
	CLI_OPTION_JSON,
	CLI_OPTION_DATA,
	CLI_OPTION_HELP,
};

const struct cli_command cli_events = {
	.name = "events",
	.arguments = "",
	.summary = "print what happened to agents, images and sessions, oldest first",
	.detail =
		"With --json an event is a line. One of the type gap says that some are no longer\n"
		"kept.\n",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.args_min = 0,
	.args_max = 0,
	.run = run,
};
