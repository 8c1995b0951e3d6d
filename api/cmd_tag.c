/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_tag.c - `hearth tag`: one more name for an image of the store. */
#include "api/cli.h"
#include "api/human.h"
#include "api/lookup.h"
#include "layers/base/clock.h"
#include "registry/holding.h"
#include "registry/tag.h"

static void tag_print(const struct cli *cli, const struct lookup *image, struct str name)
{
	AUTO(json) json_t *value = NULL;
	char digest[DIGEST_TEXT_MAX];

	digest_format(&image->digest, digest);
	if (!cli_has(cli, "json")) {
		(void)printf("%s\n", digest);
		return;
	}
	value = json_pack("{s:s, s:o}", "digest", digest, "name", json_from_str(name));
	human_json(value, stdout);
}

/*
 * Who may read a repository of ours reads what its images lead to. One more of them
 * gives no more than the first: what an index names may be another's.
 */
static int tag_check(struct store *store, const struct lookup *image, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	struct str repository;
	struct str tag;

	if (!holding_split(buf_str(&image->name), &repository, &tag))
		return 0;
	if (meta_begin(store, META_READ, &meta, err) < 0)
		return -1;
	return holding_check(meta, repository, &image->target, err);
}

static int tag_image(const struct cli *cli, struct str name, struct err *err)
{
	AUTO(store) struct store *store = NULL;
	auto_lookup struct lookup image = LOOKUP_INIT;
	struct tag tag = {.at_ms = clock_now_ms()};

	if (lookup_named(cli, &store, &image, err) < 0 || tag_check(store, &image, err) < 0)
		return -1;
	tag.target = image.target;
	tag.manifest = image.digest;
	tag.platform = image.config.platform;
	if (!tag.platform.os[0])
		platform_host(&tag.platform);
	if (tag_set(store, name, &tag, err) < 0)
		return -1;
	tag_print(cli, &image, name);
	return 0;
}

static int run(struct cli *cli, struct err *err)
{
	auto_buf struct buf name = BUF_INIT(REFERENCE_TEXT_MAX);

	if (reference_parse_name(str_of(cli->args[1]), &name, err) < 0 ||
	    tag_image(cli, buf_str(&name), err) < 0)
		return err_ctx(err, "tag %s", cli->args[0]);
	return 0;
}

static const struct cli_option options[] = {
	LOOKUP_OPTION_PLATFORM,
	CLI_OPTION_JSON,
	CLI_OPTION_DATA,
	CLI_OPTION_HELP,
};

const struct cli_command cli_tag = {
	.name = "tag",
	.arguments = "IMAGE NAME[:TAG]",
	.summary = "give an image one more name, and print its digest",
	.detail = "IMAGE is a tag, a digest, or six hex digits or more of its beginning. A name\n"
		  "that stands for another image stands for this one from then on. What is\n"
		  "named localhost/NAME:TAG is NAME:TAG in the daemon's registry; a short name is\n"
		  "one of docker.io.\n",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.args_min = 2,
	.args_max = 2,
	.run = run,
};
