/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_import.c - `hearth import`: an image of a layout or an archive, into the store. */
#include "api/access.h"
#include "api/cli.h"
#include "api/fetch.h"
#include "api/human.h"
#include "api/lookup.h"
#include "api/progress.h"
#include "api/settings.h"
#include "registry/transport.h"

/* What is imported, and as what. */
struct import {
	struct buf source; /* canonical; owned, as the next */
	struct buf name;
	struct base_request request;
};

/* `-` alone is an archive of either kind. */
static int import_source(struct import *import, const char *text, struct err *err)
{
	struct base_request *request = &import->request;
	struct reference reference;

	request->any_archive = strcmp(text, "-") == 0;
	if (reference_parse(request->any_archive ? STR("oci-archive:-") : str_of(text), &reference,
			    err) < 0 ||
	    reference_format(&reference, &import->source, err) < 0)
		return -1;
	if (!transport_of(reference.kind))
		return err_set(err, ERR_INVALID,
			       "expected oci:DIR, oci-archive:FILE, docker-archive:FILE or -; "
			       "hearth pull fetches from a registry");
	request->stream =
		transport_is_archive(reference.kind) && str_equal(reference.path, STR("-"));
	request->reference = buf_str(&import->source);
	return 0;
}

static int import_name(struct import *import, const char *text, struct err *err)
{
	import->request.name_as_there = !text;
	if (!text)
		return 0;
	if (reference_parse_name(str_of(text), &import->name, err) < 0)
		return err_ctx(err, "--tag");
	import->request.name = buf_str(&import->name);
	return 0;
}

static int import_read(const struct cli *cli, struct import *import, struct err *err)
{
	const char *platform = cli_text(cli, "platform");

	platform_host(&import->request.platform);
	if (import_source(import, cli->args[0], err) < 0 ||
	    import_name(import, cli_text(cli, "tag"), err) < 0 ||
	    access_layer_limit(cli, &import->request.max_layer_bytes, err) < 0)
		return -1;
	if (platform && platform_parse(str_of(platform), &import->request.platform, err) < 0)
		return err_ctx(err, "--platform");
	return 0;
}

/* Names go to standard error, for people; the digest to standard output. */
static void import_print(const struct cli *cli, const json_t *answer)
{
	const json_t *names = json_object_get(answer, "names");

	if (cli_has(cli, "json")) {
		human_json(answer, stdout);
		return;
	}
	for (size_t i = 0; i < json_array_size(names); i++) {
		auto_free char *name = human_text(json_str(json_array_get(names, i)));

		(void)fprintf(stderr, "named %s\n", name);
	}
	(void)printf("%s\n", json_string_value(json_object_get(answer, "manifest")));
}

static int import_run(struct cli *cli, struct import *import, struct err *err)
{
	AUTO(store) struct store *store = NULL;
	AUTO(progress) struct progress *progress = NULL;
	AUTO(json) json_t *answer = NULL;
	int columns;
	bool terminal = settings_terminal(&columns);

	if (import_read(cli, import, err) < 0 ||
	    progress_open(cli_text(cli, "progress"), terminal, columns, cli->cancel, &progress,
			  err) < 0 ||
	    cli_open_store(cli, &store, err) < 0)
		return err_ctx(err, "import %s", cli->args[0]);
	if (fetch_image(cli, store, progress, &import->request, &answer, err) < 0)
		return -1; /* it says what it read */
	progress_close(steal_ptr(&progress));
	import_print(cli, answer);
	return 0;
}

static int run(struct cli *cli, struct err *err)
{
	auto_secret struct secret none = {0};
	struct import import = {.source = BUF_INIT(2 * REFERENCE_TEXT_MAX),
				.name = BUF_INIT(2 * REFERENCE_TEXT_MAX),
				.request = {.password = &none}};
	int result = import_run(cli, &import, err);

	buf_done(&import.source);
	buf_done(&import.name);
	return result;
}

static const struct cli_option options[] = {
	{"tag", "NAME[:TAG]",
	 "name it this, and not as it is named there; as localhost/NAME:TAG the daemon's "
	 "registry has it, too",
	 false},
	LOOKUP_OPTION_PLATFORM,
	{"max-layer-bytes", "SIZE", "refuse a layer that inflates to more; 64Gi by default", false},
	PROGRESS_OPTION,
	CLI_OPTION_JSON,
	CLI_OPTION_DATA,
	CLI_OPTION_HELP,
};

const struct cli_command cli_import = {
	.name = "import",
	.arguments = "SOURCE",
	.summary = "read an image from a layout or an archive, and print its digest",
	.detail = "SOURCE is one of\n"
		  "  oci:DIR[:TAG]              an OCI layout\n"
		  "  oci-archive:FILE[:TAG]     a tar of one\n"
		  "  docker-archive:FILE[:REF]  what docker save wrote\n"
		  "  -                          an archive of either kind, from standard input\n"
		  "An archive may be compressed by gzip or zstd. Where a place holds several\n"
		  "images, the TAG or REF says which. Without --tag an image keeps the names that\n"
		  "it has there.\n",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.args_min = 1,
	.args_max = 1,
	.run = run,
};
