/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_push.c - `hearth push`: an image of the store, to a registry. */
#include "api/human.h"
#include "api/lookup.h"
#include "api/progress.h"
#include "api/send.h"
#include "api/settings.h"
#include "registry/push.h"
#include "registry/referrers.h"

/* Where to: one of the command's references. */
struct push_place {
	struct reference reference;
	struct buf canonical; /* owned */
	bool sent;
};

struct cmd_push {
	struct cli *cli;
	struct store *store;
	struct progress *progress;
	struct push_place *places; /* owned */
	size_t count;
	struct credentials credentials; /* by the options; or of the registry that is next */
	struct digest image;
	struct digest *referrers; /* owned */
	size_t referrer_count;
};

static int push_read_place(struct push_place *place, const char *text, struct err *err)
{
	place->canonical = BUF_INIT(REFERENCE_TEXT_MAX);
	if (send_name(str_of(text), &place->canonical, err) < 0)
		return -1;
	return reference_parse(buf_str(&place->canonical), &place->reference, err);
}

/* All places, judged before anything is read. */
static int push_read_places(struct cmd_push *cmd, struct err *err)
{
	const struct cli *cli = cmd->cli;
	size_t first = cli->arg_count > 1 ? 1 : 0;
	struct str hex;

	if (first == 0 && lookup_hex(str_of(cli->args[0]), &hex))
		return err_set(err, ERR_INVALID,
			       "a digest does not say where to; name a registry's reference, too");
	cmd->places = calloc(cli->arg_count, sizeof(*cmd->places));
	if (!cmd->places)
		abort();
	for (size_t i = first; i < cli->arg_count; i++) {
		if (push_read_place(&cmd->places[cmd->count++], cli->args[i], err) < 0)
			return -1;
	}
	return 0;
}

/* A password that is given is meant for one registry. */
static int push_log_in(struct cmd_push *cmd, struct err *err)
{
	const struct push_place *places = cmd->places;

	if (!cli_has(cmd->cli, "username") && !cli_has(cmd->cli, "password-stdin"))
		return 0;
	for (size_t i = 1; i < cmd->count; i++) {
		if (!str_equal(places[i].reference.host, places[0].reference.host))
			return err_set(err, ERR_INVALID,
				       "--username: the references are of several registries; push "
				       "to one at a time, or use hearth login");
	}
	return access_login(cmd->cli, buf_str(&places[0].canonical), &cmd->credentials, err);
}

static void push_print(const struct cmd_push *cmd)
{
	char digest[DIGEST_TEXT_MAX];
	AUTO(json) json_t *value = NULL;
	json_t *list;

	digest_format(&cmd->image, digest);
	if (!cli_has(cmd->cli, "json")) {
		(void)printf("%s\n", digest);
		return;
	}
	value = json_object();
	list = json_array();
	for (size_t i = 0; i < cmd->count; i++)
		(void)json_array_append_new(list,
					    json_from_str(buf_str(&cmd->places[i].canonical)));
	(void)json_object_set(value, "reference", json_array_get(list, 0));
	json_set(value, "references", list);
	json_set_text(value, "digest", digest);
	json_set_size(value, "referrers", cmd->referrer_count);
	human_json(value, stdout);
}

/* Whether it is another tag of the same repository. */
static bool push_is_tag_of(const struct push_place *place, const struct push_place *first)
{
	const struct reference *a = &place->reference;
	const struct reference *b = &first->reference;

	return !place->sent && !a->has_digest && a->tag.len > 0 && str_equal(a->host, b->host) &&
	       str_equal(a->path, b->path);
}

/* To this place, and to all others of its repository. */
static int push_send(struct cmd_push *cmd, size_t at, struct err *err)
{
	struct push_place *first = &cmd->places[at];
	auto_credentials struct credentials found = {0};
	struct str tags[PUSH_TAGS_MAX];
	struct send send = {.cli = cmd->cli,
			    .store = cmd->store,
			    .progress = cmd->progress,
			    .reference = buf_str(&first->canonical),
			    .image = cmd->image,
			    .tags = tags,
			    .referrers = cmd->referrers,
			    .referrer_count = cmd->referrer_count,
			    .credentials = &cmd->credentials};

	first->sent = true;
	for (size_t i = at + 1; i < cmd->count; i++) {
		if (!push_is_tag_of(&cmd->places[i], first))
			continue;
		cmd->places[i].sent = true;
		tags[send.tag_count++] = cmd->places[i].reference.tag;
	}
	if (!cmd->credentials.user[0]) {
		if (access_for(send.reference, cmd->cli->cancel, &found, err) < 0)
			return err_ctx(err, "push %s", first->canonical.ptr);
		send.credentials = &found;
	}
	return send_image(&send, err);
}

static int push_prepare(struct cmd_push *cmd, struct err *err)
{
	struct cli *cli = cmd->cli;
	int columns;
	bool terminal = settings_terminal(&columns);

	if (push_read_places(cmd, err) < 0 ||
	    lookup_whole(cli, &cmd->store, &cmd->image, err) < 0 || push_log_in(cmd, err) < 0)
		return -1;
	if (cli_has(cli, "referrers") &&
	    referrers_find(cmd->store, &cmd->image, &cmd->referrers, &cmd->referrer_count, err) < 0)
		return -1;
	return progress_open(cli_text(cli, "progress"), terminal, columns, cli->cancel,
			     &cmd->progress, err);
}

static int push_all(struct cmd_push *cmd, struct err *err)
{
	if (push_prepare(cmd, err) < 0)
		return err_ctx(err, "push %s", cmd->cli->args[0]);
	for (size_t i = 0; i < cmd->count; i++) {
		if (!cmd->places[i].sent && push_send(cmd, i, err) < 0)
			return -1; /* it says what it pushed */
	}
	progress_close(steal_ptr(&cmd->progress));
	push_print(cmd);
	return 0;
}

static int run(struct cli *cli, struct err *err)
{
	struct cmd_push cmd = {.cli = cli};
	int result = push_all(&cmd, err);

	progress_close(cmd.progress);
	store_close(cmd.store);
	secret_done(&cmd.credentials.password);
	for (size_t i = 0; i < cmd.count; i++)
		buf_done(&cmd.places[i].canonical);
	free(cmd.places);
	free(cmd.referrers);
	return result;
}

static const struct cli_option options[] = {
	{"platform", "OS/ARCH", "the image of this platform alone, and not the index", false},
	{"referrers", NULL,
	 "with what the daemon's repositories say is about the image: signatures, bills of "
	 "materials",
	 false},
	PROGRESS_OPTION,
	ACCESS_OPTIONS_REGISTRY,
	ACCESS_OPTIONS_LOGIN,
	CLI_OPTION_JSON,
	CLI_OPTION_DATA,
	CLI_OPTION_HELP,
};

const struct cli_command cli_push = {
	.name = "push",
	.arguments = "IMAGE [REF...]",
	.summary = "send an image to a registry, and print its digest",
	.detail =
		"IMAGE is a tag, a digest, or six hex digits or more of its beginning. REF says\n"
		"where it goes, HOST[:PORT]/NAME[:TAG]; without REF the name is IMAGE. Several of\n"
		"one repository are its tags, for which nothing is sent again. What the\n"
		"registry has is not sent. Of an image for several platforms all go if all are\n"
		"here, else the one that is. Credentials are read from Docker's config.json, and\n"
		"its helpers are asked.\n",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.args_min = 1,
	.args_max = 1 + PUSH_TAGS_MAX,
	.run = run,
};
