/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_rm.c - `hearth rm`: names and images go, with what only they needed. */
#include "api/cli.h"
#include "api/human.h"
#include "api/lookup.h"
#include "bake/agent_tag.h"
#include "bake/gc.h"
#include "layers/base/array.h"
#include "registry/holding.h"
#include "registry/tag.h"

#include <string.h>

struct cmd_rm {
	const struct cli *cli;
	json_t *untagged;      /* owned: references */
	struct digest *images; /* owned: manifests that the arguments stand for */
	size_t count;
	json_t *removed; /* owned: digests */
};

/* What one argument stands for: a digest, or else a canonical reference. */
struct rm_wanted {
	struct cmd_rm *cmd;
	struct meta *meta;
	bool by_digest;
	struct digest digest;
	struct str reference;
	size_t found;
};

static int rm_add_image(struct cmd_rm *cmd, const struct digest *digest, struct err *err)
{
	if (array_make_room(&cmd->images, sizeof(*cmd->images), cmd->count, GC_IMAGES_MAX, "images",
			    err) < 0)
		return -1;
	cmd->images[cmd->count++] = *digest;
	return 0;
}

/* What was pushed under a name goes with it, as what was baked does. */
static int rm_release(struct meta *meta, struct str reference, const struct tag *tag,
		      struct err *err)
{
	struct str repository;
	struct str name;

	if (!holding_split(reference, &repository, &name))
		return 0;
	return holding_release(meta, repository, &tag->target, err);
}

static int rm_consider(void *ctx, struct str reference, const struct tag *tag, struct err *err)
{
	struct rm_wanted *wanted = ctx;
	bool fits = wanted->by_digest ? digest_equal(&tag->manifest, &wanted->digest) ||
						digest_equal(&tag->target, &wanted->digest)
				      : str_equal(reference, wanted->reference);

	if (!fits)
		return 0;
	wanted->found++;
	if (rm_add_image(wanted->cmd, &tag->manifest, err) < 0 ||
	    rm_release(wanted->meta, reference, tag, err) < 0)
		return -1;
	if (json_array_append_new(wanted->cmd->untagged, json_from_str(reference)) < 0)
		abort(); /* only out of memory */
	return 0;
}

static int rm_unknown(const char *text, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "no image %s here; hearth images lists them", text);
}

static int rm_resolve(struct cmd_rm *cmd, struct meta *meta, const char *text, struct err *err)
{
	auto_buf struct buf canonical = BUF_INIT(REFERENCE_TEXT_MAX);
	struct rm_wanted wanted = {.cmd = cmd, .meta = meta};
	struct reference reference;
	int found = lookup_digest(meta, str_of(text), &wanted.digest, err);

	if (found < 0)
		return -1;
	wanted.by_digest = found == 1;
	if (found == 0 && str_starts(str_of(text), STR("sha256:")))
		return rm_unknown(text, err);
	if (found == 1 ? rm_add_image(cmd, &wanted.digest, err) < 0
		       : reference_parse(str_of(text), &reference, err) < 0 ||
				 reference_format(&reference, &canonical, err) < 0)
		return -1;
	wanted.reference = buf_str(&canonical);
	if (tag_each(meta, rm_consider, &wanted, err) < 0)
		return -1;
	if (found == 0 && wanted.found == 0 && agent_tag_name(&reference, &canonical)) {
		wanted.reference = buf_str(&canonical);
		if (tag_each(meta, rm_consider, &wanted, err) < 0)
			return -1;
	}
	return found == 1 || wanted.found > 0 ? 0 : rm_unknown(text, err);
}

/* All names in one transaction, or none. */
static int rm_untag(struct cmd_rm *cmd, struct store *store, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	json_t *reference;
	size_t at;

	if (meta_begin(store, META_WRITE, &meta, err) < 0)
		return -1;
	for (size_t i = 0; i < cmd->cli->arg_count; i++) {
		if (rm_resolve(cmd, meta, cmd->cli->args[i], err) < 0)
			return -1;
	}
	json_array_foreach(cmd->untagged, at, reference)
	{
		if (tag_del(meta, json_str(reference), err) < 0)
			return -1;
	}
	return meta_commit(steal_ptr(&meta), err);
}

static void rm_hear(void *ctx, const struct gc_event *event)
{
	struct cmd_rm *cmd = ctx;
	char text[DIGEST_TEXT_MAX];

	if (json_array_append_new(cmd->removed, json_string(digest_format(event->digest, text))) <
	    0)
		abort(); /* only out of memory */
}

static void rm_print(const struct cmd_rm *cmd, uint64_t freed)
{
	char size[HUMAN_TEXT_MAX];
	json_t *item;
	size_t at;

	if (cli_has(cmd->cli, "json")) {
		AUTO(json)
		json_t *value = json_pack("{s:O, s:O, s:I}", "untagged", cmd->untagged, "images",
					  cmd->removed, "freedBytes", (json_int_t)freed);

		human_json(value, stdout);
		return;
	}
	json_array_foreach(cmd->untagged, at, item)
	{
		auto_free char *name = human_text(json_str(item));

		(void)printf("untagged %s\n", name);
	}
	json_array_foreach(cmd->removed, at, item)(void)
		printf("removed %s\n", json_string_value(item));
	(void)printf("%s freed\n", human_size(freed, size));
}

static int rm_all(struct cmd_rm *cmd, struct store *store, struct err *err)
{
	struct gc_options options = {
		.store = store,
		.policy = GC_POLICY_INIT,
		.event = rm_hear,
		.event_ctx = cmd,
		.cancel = cmd->cli->cancel,
	};
	struct gc_result result;

	if (rm_untag(cmd, store, err) < 0)
		return -1;
	options.policy.images = cmd->images;
	options.policy.image_count = cmd->count;
	if (gc_run(&options, &result, err) < 0)
		return err_ctx(err, "the names are gone, and their space comes back with the next "
				    "hearth gc");
	rm_print(cmd, result.collected.chunk_bytes + result.collected.tree_bytes);
	return 0;
}

static int run(struct cli *cli, struct err *err)
{
	AUTO(json) json_t *untagged = json_array();
	AUTO(json) json_t *removed = json_array();
	AUTO(store) struct store *store = NULL;
	struct cmd_rm cmd = {.cli = cli, .untagged = untagged, .removed = removed};
	int result = cli_find_store(cli, &store, err);

	if (result == 0)
		result = rm_unknown(cli->args[0], err);
	else if (result == 1)
		result = rm_all(&cmd, store, err);
	free(cmd.images);
	return result < 0 ? err_ctx(err, "rm") : 0;
}

static const struct cli_option options[] = {
	CLI_OPTION_JSON,
	CLI_OPTION_DATA,
	CLI_OPTION_HELP,
};

const struct cli_command cli_rm = {
	.name = "rm",
	.arguments = "IMAGE...",
	.summary = "remove tags and images, and what only they needed",
	.detail = "IMAGE is a tag, a digest, or six hex digits or more of its beginning. A tag\n"
		  "goes, and with the last one its image; a digest takes all of its tags along.\n"
		  "What other images share stays.\n",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.args_min = 1,
	.args_max = CLI_REPEAT_MAX,
	.run = run,
};
