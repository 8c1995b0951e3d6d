/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_sessions.c - `hearth sessions`: list, open and end sessions with agents. */
#include "api/await.h"
#include "api/human.h"
#include "api/page_option.h"

#include <string.h>

static void sessions_print_row(const json_t *session)
{
	const char *subagent = await_text(session, "subagent");
	auto_free char *name = NULL;

	if (asprintf(&name, "%s:%lld", await_text(session, "slug"),
		     (long long)json_integer_value(json_object_get(session, "version"))) < 0)
		abort();
	(void)printf("%s  %-24s  %-5s  %s%s%s\n", await_text(session, "id"), name,
		     await_text(session, "state"), await_text(session, "createdAt"),
		     *subagent ? "  " : "", subagent);
}

static int sessions_list(const struct cli *cli, struct err *err)
{
	AUTO(json) json_t *args = json_object();
	AUTO(json) json_t *page = NULL;
	const struct call_spec spec = {.method = "sessions.list", .args = args};
	const json_t *items;

	if (page_option_read(cli, cli->arg_count > 1 ? cli->args[1] : NULL, args, err) < 0 ||
	    call_daemon(cli, &spec, &page, err) < 0)
		return -1;
	if (cli_has(cli, "json")) {
		human_json(page, stdout);
		return 0;
	}
	items = json_object_get(page, "items");
	for (size_t i = 0; i < json_array_size(items); i++)
		sessions_print_row(json_array_get(items, i));
	page_option_print_next(page);
	return 0;
}

/* Print the session; of a new one only the id, for scripts. */
static int sessions_ask(const struct cli *cli, const char *method, const json_t *args,
			struct err *err)
{
	AUTO(json) json_t *session = NULL;
	const struct call_spec spec = {.method = method, .args = args};

	if (call_daemon(cli, &spec, &session, err) < 0)
		return -1;
	if (cli_has(cli, "json"))
		human_json(session, stdout);
	else
		(void)printf("%s\n", await_text(session, "id"));
	return 0;
}

/* Which command shows what an image is not ready for. */
static int sessions_refused(const struct cli *cli, struct err *err)
{
	const char *version = cli_text(cli, "version");
	const struct err why = *err;

	if (why.kind != ERR_NOT_READY)
		return -1;
	return err_set(err, why.kind, "%s; hearth status %s%s%s shows it", why.text, cli->args[1],
		       version ? " --version " : "", version ? version : "");
}

static int sessions_create(const struct cli *cli, struct err *err)
{
	static const char *const names[] = {"parent", "subagent"};
	AUTO(json) json_t *args = json_object();
	const char *version = cli_text(cli, "version");
	size_t number;

	if (version && cli_read_step("--version", version, &number, err) < 0)
		return -1;
	if (version)
		(void)json_object_set_new(args, "version", json_integer((json_int_t)number));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *text = cli_text(cli, names[i]);

		if (text)
			(void)json_object_set_new(args, names[i], json_from_str(str_of(text)));
	}
	(void)json_object_set_new(args, "agent", json_from_str(str_of(cli->args[1])));
	return sessions_ask(cli, "sessions.create", args, err) < 0 ? sessions_refused(cli, err) : 0;
}

static int sessions_end(const struct cli *cli, struct err *err)
{
	AUTO(json) json_t *args = json_object();

	(void)json_object_set_new(args, "id", json_from_str(str_of(cli->args[1])));
	return sessions_ask(cli, "sessions.end", args, err);
}

static int run(struct cli *cli, struct err *err)
{
	const char *action = cli->arg_count > 0 ? cli->args[0] : "list";

	if (strcmp(action, "list") == 0)
		return sessions_list(cli, err);
	if (cli->arg_count == 2 && strcmp(action, "create") == 0)
		return sessions_create(cli, err);
	if (cli->arg_count == 2 && strcmp(action, "end") == 0)
		return sessions_end(cli, err);
	return err_set(err, ERR_INVALID,
		       "sessions %s: expected list [AGENT], create AGENT or end SESSION", action);
}

static const struct cli_option options[] = {
	{"version", "N", "create: with this version, rather than the latest", false},
	{"parent", "SESSION", "create: as a child of this session, on its machine", false},
	{"subagent", "NAME", "create: of the version's sub-agent of that name", false},
	PAGE_OPTIONS,
	CLI_OPTION_JSON,
	CLI_OPTION_DATA,
	CLI_OPTION_HELP,
};

const struct cli_command cli_sessions = {
	.name = "sessions",
	.arguments = "[list [AGENT] | create AGENT | end SESSION]",
	.summary = "list, open and end sessions with agents",
	.detail = "A new session's id is printed. While the version's image is not ready it ends\n"
		  "with 75, and hearth status AGENT --wait waits for it.\n",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.args_min = 0,
	.args_max = 2,
	.run = run,
};
