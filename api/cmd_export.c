/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_export.c - `hearth export`: an image of the store as a layout or an archive. */
#include "api/export.h"
#include "api/human.h"
#include "api/lookup.h"
#include "api/progress.h"
#include "api/settings.h"

#include <string.h>

/* Where the archive itself goes to standard output, nothing else does. */
static void export_print(const struct cli *cli, const struct export_spec *spec)
{
	bool stream = export_is_stream(spec->to);
	AUTO(json) json_t *value = NULL;
	char digest[DIGEST_TEXT_MAX];

	digest_format(&spec->image, digest);
	if (cli_has(cli, "json")) {
		value = json_pack("{s:s, s:s}", "digest", digest, "to", spec->to);
		human_json(value, stream ? stderr : stdout);
	} else if (!stream) {
		(void)printf("%s\n", digest);
	}
}

static int export_run(const struct cli *cli, struct store *store, const struct lookup *image,
		      struct err *err)
{
	AUTO(progress) struct progress *progress = NULL;
	AUTO(json) json_t *names = json_array();
	const char *platform = cli_text(cli, "platform");
	bool all = platform && strcmp(platform, "all") == 0;
	struct export_spec spec = {
		.to = cli->args[1],
		.image = all ? image->target : image->digest,
		.names = names,
	};
	struct reference reference;
	int columns;
	bool terminal = settings_terminal(&columns);

	/* A name that refers to a place (oci:DIR) is no name for the exported image. */
	if (image->name.len > 0 && reference_parse(buf_str(&image->name), &reference, err) == 0 &&
	    reference.kind == REFERENCE_REGISTRY && !reference.has_digest)
		(void)json_array_append_new(names, json_from_str(buf_str(&image->name)));
	if (progress_open(cli_text(cli, "progress"), terminal, columns, cli->cancel, &progress,
			  err) < 0 ||
	    export_image(cli, store, progress, &spec, err) < 0)
		return -1;
	progress_close(steal_ptr(&progress));
	export_print(cli, &spec);
	return 0;
}

static int run(struct cli *cli, struct err *err)
{
	AUTO(store) struct store *store = NULL;
	auto_lookup struct lookup image = LOOKUP_INIT;

	if (export_check(cli->args[1], true, err) < 0 ||
	    lookup_named(cli, &store, &image, err) < 0 || export_run(cli, store, &image, err) < 0)
		return err_ctx(err, "export %s", cli->args[0]);
	return 0;
}

static const struct cli_option options[] = {
	{"platform", "OS/ARCH|all",
	 "of several images that of this platform, or with all the index", false},
	PROGRESS_OPTION,
	CLI_OPTION_JSON,
	CLI_OPTION_DATA,
	CLI_OPTION_HELP,
};

const struct cli_command cli_export = {
	.name = "export",
	.arguments = "IMAGE DEST",
	.summary = "write an image as a layout or an archive",
	.detail = "IMAGE is a tag, a digest, or six hex digits or more of its beginning.\n"
		  "DEST is one of\n"
		  "  oci:DIR[:TAG]              an OCI layout; other images in it stay\n"
		  "  oci-archive:FILE[:TAG]     a tar of one\n"
		  "  docker-archive:FILE[:REF]  what docker load reads\n"
		  "The FILE - is standard output. A file is replaced when the new one is whole\n"
		  "and durable, and not before.\n",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.args_min = 2,
	.args_max = 2,
	.run = run,
};
