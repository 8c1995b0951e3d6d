/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_ls.c - `hearth ls` and `hearth tags`: what the daemon's registry has, or another one. */
#include "api/call.h"
#include "api/human.h"
#include "api/inquiry.h"
#include "registry/holding.h"

#include <string.h>

#define LS_PAGE 1000
#define LS_PATH_MAX ((size_t)4096) /* of a URL */

struct ls {
	const struct cli *cli;
	bool tags;         /* of `path`; else repositories, those at or below it */
	struct str host;   /* "" for the daemon */
	struct str path;   /* or "" */
	const char *after; /* or NULL */
	size_t limit;      /* 0 for all */
	size_t count;      /* so many were told */
	json_t *list;      /* owned, for JSON; else NULL */
};

/* Whether a repository is the one that is meant, or below it. */
static bool ls_fits(const struct ls *ls, struct str name)
{
	struct str path = ls->path;

	if (ls->tags || path.len == 0)
		return true;
	return str_starts(name, path) && (name.len == path.len || name.ptr[path.len] == '/');
}

static void ls_hear(void *ctx, const json_t *names)
{
	struct ls *ls = ctx;
	const json_t *name;
	size_t i;

	json_array_foreach(names, i, name)
	{
		auto_free char *text = NULL;

		if (!ls_fits(ls, json_str(name)) || (ls->limit > 0 && ls->count == ls->limit))
			continue;
		ls->count++;
		text = human_text(json_str(name));
		if (ls->list)
			(void)json_array_append(ls->list, drop_const(name));
		else
			(void)printf("%s\n", text);
	}
}

static int ls_daemon_path(const struct ls *ls, struct str after, struct buf *out, struct err *err)
{
	buf_clear(out);
	if (buf_add(out, STR("/v2/"), err) < 0 ||
	    (ls->tags ? http_add_escaped(out, ls->path, "/", err) : 0) < 0 ||
	    buf_addf(out, err, "%s?n=%d", ls->tags ? "/tags/list" : "_catalog", LS_PAGE) < 0)
		return -1;
	if (after.len == 0)
		return 0;
	return buf_add(out, STR("&last="), err) < 0 ? -1 : http_add_escaped(out, after, "/", err);
}

/* One page: 1 and the last name of it where there are more, 0, -1. */
static int ls_daemon_page(struct ls *ls, struct buf *last, struct err *err)
{
	auto_buf struct buf path = BUF_INIT(LS_PATH_MAX);
	AUTO(json) json_t *answer = NULL;
	const json_t *names;
	bool more = false;
	size_t count;

	if (ls_daemon_path(ls, buf_str(last), &path, err) < 0 ||
	    call_registry(ls->cli, path.ptr, &answer, &more, err) < 0)
		return -1;
	names = json_object_get(answer, ls->tags ? "tags" : "repositories");
	count = json_array_size(names);
	ls_hear(ls, names);
	if (!more || count == 0 || (ls->limit > 0 && ls->count == ls->limit))
		return 0;
	buf_clear(last);
	return buf_add(last, json_str(json_array_get(names, count - 1)), err) < 0 ? -1 : 1;
}

/* A short name that was given here is docker.io's: nobody finds that in the daemon's registry. */
static int ls_unknown(const struct ls *ls, struct err *err)
{
	const struct err why = *err;

	if (why.kind != ERR_NOT_FOUND)
		return -1;
	return err_set(err, ERR_NOT_FOUND,
		       "%s; hearth ls lists them, and hearth tag IMAGE " HOLDING_HOST "/" STR_FMT
		       ":TAG makes one",
		       why.text, STR_ARG(ls->path));
}

static int ls_daemon(struct ls *ls, struct err *err)
{
	auto_buf struct buf last = BUF_INIT(LS_PATH_MAX);
	int more = buf_add(&last, str_of(ls->after ? ls->after : ""), err) < 0 ? -1 : 1;

	while (more == 1)
		more = ls_daemon_page(ls, &last, err);
	return more < 0 ? ls_unknown(ls, err) : 0;
}

static int ls_remote(struct ls *ls, struct err *err)
{
	auto_credentials struct credentials credentials = {0};
	auto_buf struct buf name = BUF_INIT(REFERENCE_TEXT_MAX);
	const struct inquiry inquiry = {.cli = ls->cli,
					.host = ls->host,
					.path = ls->tags ? ls->path : STR(""),
					.after = str_of(ls->after ? ls->after : ""),
					.limit = ls->path.len > 0 && !ls->tags ? 0 : ls->limit,
					.credentials = &credentials,
					.hear = ls_hear,
					.ctx = ls};

	if (buf_addf(&name, err, STR_FMT "/" STR_FMT, STR_ARG(ls->host),
		     STR_ARG(ls->path.len > 0 ? ls->path : STR("a"))) < 0 ||
	    access_login(ls->cli, buf_str(&name), &credentials, err) < 0)
		return -1;
	return inquiry_names(&inquiry, err);
}

/* Whether a name's first part is a host; "localhost" is what we call our own images. */
static bool ls_take_host(struct str *name, struct str *out)
{
	const char *slash = memchr(name->ptr, '/', name->len);
	struct str first = {name->ptr, slash ? (size_t)(slash - name->ptr) : name->len};
	bool host = memchr(first.ptr, '.', first.len) || memchr(first.ptr, ':', first.len);

	if (!host && !str_equal(first, STR("localhost")))
		return false;
	*name = str_skip(*name, slash ? first.len + 1 : first.len);
	while (name->len > 0 && name->ptr[name->len - 1] == '/')
		name->len--;
	if (host)
		*out = first;
	return true;
}

/* debian is library/debian there. */
static int ls_read_repository(struct ls *ls, struct reference *room, struct err *err)
{
	struct str rest = ls->path;
	const char *text = ls->cli->args[0];
	struct err why = {0};

	if (rest.len == 0 || memchr(rest.ptr, ':', rest.len) || memchr(rest.ptr, '@', rest.len))
		return err_set(err, ERR_INVALID,
			       "%s: expected a repository, [HOST[:PORT]/]NAME, without a tag",
			       text);
	if (ls->host.len == 0)
		return 0;
	if (reference_parse(str_of(text), room, &why) < 0 || room->kind != REFERENCE_REGISTRY)
		return err_set(err, ERR_INVALID, "%s: %s", text, why.text);
	ls->host = room->host;
	ls->path = room->path;
	return 0;
}

static int ls_read_host(const struct ls *ls, struct err *err)
{
	auto_buf struct buf name = BUF_INIT(REFERENCE_TEXT_MAX);
	struct reference reference;
	struct err why;

	if (ls->host.len == 0)
		return 0;
	if (buf_addf(&name, &why, STR_FMT "/a", STR_ARG(ls->host)) < 0 ||
	    reference_parse(buf_str(&name), &reference, &why) < 0)
		return err_set(err, ERR_INVALID, "%s: expected HOST[:PORT][/PREFIX], or a PREFIX",
			       ls->cli->args[0]);
	return 0;
}

/* The daemon is asked as by all other commands, which none of these says how. */
static int ls_check_options(const struct ls *ls, struct err *err)
{
	static const char *const names[] = {"username", "password-stdin", "plain-http", "ca-file"};

	for (size_t i = 0; ls->host.len == 0 && i < sizeof(names) / sizeof(names[0]); i++) {
		if (cli_has(ls->cli, names[i]))
			return err_set(err, ERR_INVALID,
				       "--%s is for a registry, HOST[:PORT]; the daemon is asked "
				       "by HEARTH_URL and HEARTH_TOKEN, or on its own host",
				       names[i]);
	}
	return 0;
}

static int ls_read(struct ls *ls, struct reference *room, struct err *err)
{
	const struct cli *cli = ls->cli;
	const char *limit = cli_text(cli, "limit");

	ls->after = cli_text(cli, "after");
	if (limit && cli_read_step("--limit", limit, &ls->limit, err) < 0)
		return -1;
	ls->path = str_of(cli->arg_count > 0 ? cli->args[0] : "");
	if (!ls_take_host(&ls->path, &ls->host))
		ls->host = STR("");
	if (ls_check_options(ls, err) < 0)
		return -1;
	if (cli->arg_count == 0)
		return 0;
	return ls->tags ? ls_read_repository(ls, room, err) : ls_read_host(ls, err);
}

/* A prefix that nothing has may be a name that is not the daemon's. */
static void ls_say_none(const struct ls *ls)
{
	auto_free char *path = human_text(ls->path);

	if (!ls->tags && ls->count == 0 && *path)
		(void)fprintf(stderr,
			      "no repository at or below %s; hearth images lists what is in the "
			      "store\n",
			      path);
}

static int ls_run(struct cli *cli, bool tags, struct err *err)
{
	AUTO(json) json_t *list = cli_has(cli, "json") ? json_array() : NULL;
	struct ls ls = {.cli = cli, .tags = tags, .host = STR(""), .path = STR(""), .list = list};
	struct reference room;

	if (ls_read(&ls, &room, err) < 0)
		return -1;
	if ((ls.host.len > 0 ? ls_remote(&ls, err) : ls_daemon(&ls, err)) < 0)
		return tags ? -1 : err_ctx(err, "ls"); /* which repository is said */
	if (list)
		human_json(list, stdout);
	else
		ls_say_none(&ls);
	return 0;
}

static int run_ls(struct cli *cli, struct err *err)
{
	return ls_run(cli, false, err);
}

static int run_tags(struct cli *cli, struct err *err)
{
	return ls_run(cli, true, err);
}

static const struct cli_option options[] = {
	{"limit", "N", "at most so many; all by default", false},
	{"after", "NAME", "only what comes behind this one", false},
	ACCESS_OPTIONS_REGISTRY,
	ACCESS_OPTIONS_LOGIN,
	CLI_OPTION_JSON,
	CLI_OPTION_DATA,
	CLI_OPTION_HELP,
};

const struct cli_command cli_ls = {
	.name = "ls",
	.arguments = "[REGISTRY[/PREFIX]|PREFIX]",
	.summary = "list the repositories of the daemon, or of a registry",
	.detail = "REGISTRY is HOST[:PORT]; not every registry lists what it has. With a PREFIX,\n"
		  "acme, only acme itself and acme/... are listed. hearth images lists the single\n"
		  "images of the store.\n",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.args_min = 0,
	.args_max = 1,
	.run = run_ls,
};

const struct cli_command cli_tags = {
	.name = "tags",
	.arguments = "REPOSITORY",
	.summary = "list the tags of a repository",
	.detail =
		"REPOSITORY is HOST[:PORT]/NAME, or the NAME of one of the daemon's (hearth ls):\n"
		"what is pushed to it, what it bakes, and what is tagged localhost/NAME:TAG. An\n"
		"image that is tagged NAME:TAG is docker.io's and in the store alone.\n",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.args_min = 1,
	.args_max = 1,
	.run = run_tags,
};
