/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_copy.c - `hearth copy`: an image from anywhere to anywhere, by way of the store. */
#include "api/export.h"
#include "api/fetch.h"
#include "api/human.h"
#include "api/inquiry.h"
#include "api/progress.h"
#include "api/registries.h"
#include "api/send.h"
#include "api/settings.h"
#include "bake/agent_tag.h"
#include "bake/convert_request.h"
#include "layers/lease.h"
#include "registry/holding.h"
#include "registry/referrers.h"
#include "registry/tag.h"
#include "registry/transport.h"

#include <string.h>

struct copy {
	struct cli *cli;
	const char *source; /* as the command has it, and the next */
	const char *dest;
	const char *tag; /* of all that are copied; NULL where one image is */
	struct store *store;
	struct lease *lease; /* nothing that is copied has a name */
	struct progress *progress;
	struct buf from; /* canonical, as the next; owned */
	struct buf to;   /* of a registry; empty for a place */
	struct credentials from_login;
	struct credentials to_login;
	struct registries registries;
	enum layer_codec codec;
	struct digest image;
	struct digest *referrers; /* owned: what is about it, and goes with it */
	size_t referrer_count;
};

static bool copy_all(const struct copy *copy)
{
	const char *platform = cli_text(copy->cli, "platform");

	return platform && strcmp(platform, "all") == 0;
}

/* Both ends are judged before anything is read. */
static int copy_judge(struct copy *copy, struct base_request *request, struct err *err)
{
	const struct cli *cli = copy->cli;
	const char *platform = cli_text(cli, "platform");
	const char *codec = cli_text(cli, "compression");
	bool any = strcmp(copy->source, "-") == 0;
	struct reference from;
	struct reference to;

	if (reference_parse(any ? STR("oci-archive:-") : str_of(copy->source), &from, err) < 0 ||
	    reference_format(&from, &copy->from, err) < 0 ||
	    reference_parse(str_of(copy->dest), &to, err) < 0)
		return -1;
	if (to.kind == REFERENCE_REGISTRY ? send_name(str_of(copy->dest), &copy->to, err) < 0
					  : export_check(copy->dest, true, err) < 0)
		return -1;
	if (codec && layer_codec_parse(str_of(codec), &copy->codec, err) < 0)
		return err_ctx(err, "--compression");
	platform_host(&request->platform);
	if (platform && !copy_all(copy) &&
	    platform_parse(str_of(platform), &request->platform, err) < 0)
		return err_ctx(err, "--platform");
	request->reference = buf_str(&copy->from);
	request->any_archive = any;
	request->stream = transport_is_archive(from.kind) && str_equal(from.path, STR("-"));
	request->all_platforms = copy_all(copy);
	request->bare = true;
	request->referrers = cli_has(cli, "referrers");
	if (request->referrers && to.kind != REFERENCE_REGISTRY)
		return err_set(err, ERR_INVALID, "--referrers: only a registry takes them");
	if (request->referrers && codec)
		return err_set(err, ERR_INVALID,
			       "--referrers: what is about an image is not about it in another "
			       "--compression");
	return 0;
}

static int copy_log_in(struct copy *copy, struct base_request *request, struct err *err)
{
	const struct cancel *cancel = copy->cli->cancel;

	if (access_for(buf_str(&copy->from), cancel, &copy->from_login, err) < 0 ||
	    registries_open(copy->cli, buf_str(&copy->from), &copy->registries, err) < 0 ||
	    (copy->to.len > 0 && access_for(buf_str(&copy->to), cancel, &copy->to_login, err) < 0))
		return -1;
	request->plain_http = cli_has(copy->cli, "plain-http");
	request->ca_file = cli_text(copy->cli, "ca-file");
	request->user = str_of(copy->from_login.user);
	request->password = &copy->from_login.password;
	request->places = &copy->registries.places;
	return 0;
}

/* Whether the source is a tag that was made here, which no registry has: 1, 0, -1. */
static int copy_find_own(struct copy *copy, const struct platform *platform, struct err *err)
{
	auto_buf struct buf name = BUF_INIT(REFERENCE_TEXT_MAX);
	AUTO(meta) struct meta *meta = NULL;
	struct reference from;
	struct tag tag;
	int found;

	if (meta_begin(copy->store, META_READ, &meta, err) < 0)
		return -1;
	found = tag_find(meta, buf_str(&copy->from), platform, &tag, err);
	if (found == 0 && reference_parse(buf_str(&copy->from), &from, err) == 0)
		found = agent_tag_find(meta, &from, platform, &name, &tag, err);
	if (found == 0 && str_starts(buf_str(&copy->from), STR(HOLDING_HOST "/")))
		return err_set(err, ERR_NOT_FOUND, "it is not here; hearth images lists what is");
	if (found < 1 || tag.pulled)
		return found < 0 ? -1 : 0;
	copy->image = copy_all(copy) ? tag.target : tag.manifest;
	if (cli_has(copy->cli, "referrers") &&
	    referrers_find(copy->store, &copy->image, &copy->referrers, &copy->referrer_count,
			   err) < 0)
		return -1;
	return 1;
}

/* What came with it; each is held, as the image is. */
static int copy_note_referrers(struct copy *copy, const json_t *list, struct err *err)
{
	const json_t *item;
	size_t i;

	copy->referrers = calloc(json_array_size(list) + 1, sizeof(*copy->referrers));
	if (!copy->referrers)
		abort();
	json_array_foreach(list, i, item)
	{
		if (digest_parse(json_str(item), &copy->referrers[i], err) < 0 ||
		    lease_add(copy->lease, &copy->referrers[i], err) < 0)
			return -1;
	}
	copy->referrer_count = json_array_size(list);
	return 0;
}

static int copy_fetch(struct copy *copy, const struct base_request *request, struct err *err)
{
	AUTO(json) json_t *answer = NULL;
	struct str text;
	int own = copy_find_own(copy, &request->platform, err);

	if (own != 0)
		return own < 0 ? -1 : 0;
	if (fetch_image(copy->cli, copy->store, copy->progress, request, &answer, err) < 0 ||
	    json_need_string(answer, "", "manifest", &text, err) < 0 ||
	    copy_note_referrers(copy, json_object_get(answer, "referrers"), err) < 0)
		return -1;
	return digest_parse(text, &copy->image, err);
}

static int copy_convert(struct copy *copy, struct err *err)
{
	const struct asker asker = {.store = copy->store,
				    .worker_path = copy->cli->worker_path,
				    .cancel = copy->cli->cancel};
	struct digest converted;

	if (!cli_has(copy->cli, "compression"))
		return 0;
	if (convert_ask_image(&asker, &copy->image, copy->codec, &converted, err) < 0)
		return -1;
	copy->image = converted;
	return lease_add(copy->lease, &copy->image, err);
}

static int copy_send(struct copy *copy, struct err *err)
{
	const struct export_spec place = {.to = copy->dest, .image = copy->image};
	struct reference from;
	struct reference to;
	struct send send = {.cli = copy->cli,
			    .store = copy->store,
			    .progress = copy->progress,
			    .reference = buf_str(&copy->to),
			    .image = copy->image,
			    .referrers = copy->referrers,
			    .referrer_count = copy->referrer_count,
			    .credentials = &copy->to_login};
	struct err ignored;

	/* Within a registry blobs are mounted, where it can. */
	if (copy->to.len > 0 && reference_parse(buf_str(&copy->from), &from, &ignored) == 0 &&
	    reference_parse(buf_str(&copy->to), &to, &ignored) == 0 &&
	    from.kind == REFERENCE_REGISTRY && str_equal(from.host, to.host))
		send.from = from.path;
	return copy->to.len > 0 ? send_image(&send, err)
				: export_image(copy->cli, copy->store, copy->progress, &place, err);
}

static void copy_print(const struct copy *copy)
{
	bool stream = export_is_stream(copy->dest);
	AUTO(json) json_t *value = NULL;
	char digest[DIGEST_TEXT_MAX];

	digest_format(&copy->image, digest);
	if (cli_has(copy->cli, "json")) {
		value = json_pack("{s:s, s:s, s:s}", "digest", digest, "from", copy->source, "to",
				  copy->dest);
		human_json(value, stream ? stderr : stdout);
	} else if (!stream) {
		(void)printf("%s%s%s\n", copy->tag ? copy->tag : "", copy->tag ? " " : "", digest);
	}
}

static int copy_image(struct copy *copy, struct err *err)
{
	struct base_request request = {0};
	int columns;
	bool terminal = settings_terminal(&columns);

	if (copy_judge(copy, &request, err) < 0 || copy_log_in(copy, &request, err) < 0 ||
	    progress_open(cli_text(copy->cli, "progress"), terminal, columns, copy->cli->cancel,
			  &copy->progress, err) < 0 ||
	    cli_open_store(copy->cli, &copy->store, err) < 0 ||
	    lease_open(copy->store, &copy->lease, err) < 0 || lease_rest(copy->lease, err) < 0)
		return -1;
	if (copy_fetch(copy, &request, err) < 0 || lease_add(copy->lease, &copy->image, err) < 0 ||
	    copy_convert(copy, err) < 0 || copy_send(copy, err) < 0)
		return -1;
	progress_close(steal_ptr(&copy->progress));
	copy_print(copy);
	return 0;
}

static int copy_one(struct cli *cli, const char *source, const char *dest, const char *tag,
		    struct err *err)
{
	struct copy copy = {.cli = cli,
			    .source = source,
			    .dest = dest,
			    .tag = tag,
			    .from = BUF_INIT(2 * REFERENCE_TEXT_MAX),
			    .to = BUF_INIT(2 * REFERENCE_TEXT_MAX)};
	int result = copy_image(&copy, err);

	progress_close(copy.progress);
	lease_close(copy.lease);
	store_close(copy.store);
	secret_done(&copy.from_login.password);
	secret_done(&copy.to_login.password);
	registries_done(&copy.registries);
	free(copy.referrers);
	buf_done(&copy.from);
	buf_done(&copy.to);
	return result < 0 ? err_ctx(err, "copy %s", source) : 0;
}

/* An end of a copy of all tags: a registry's repository. */
static int copy_read_repository(const char *text, struct reference *out, struct err *err)
{
	const char *slash = strrchr(text, '/');

	if (reference_parse(str_of(text), out, err) < 0)
		return -1;
	if (out->kind != REFERENCE_REGISTRY || strpbrk(slash ? slash : text, ":@"))
		return err_set(
			err, ERR_INVALID,
			"--all-tags: %s: expected a registry's HOST[:PORT]/NAME without a tag",
			text);
	return 0;
}

/* "sha256-" and 64 hex digits: a list of what is about an image, which --referrers takes along. */
static bool copy_is_list(const char *tag)
{
	size_t len = strlen(tag);

	return (str_starts(str_of(tag), STR("sha256-")) ||
		str_starts(str_of(tag), STR("sha512-"))) &&
	       len == 7 + 64 && strspn(tag + 7, "0123456789abcdef") == 64;
}

/* An inquiry_fn: ctx is an array of all tags. */
static void copy_hear_tags(void *ctx, const json_t *names)
{
	json_t *tag;
	size_t i;

	json_array_foreach((json_t *)drop_const(names), i, tag)
	{
		if (!copy_is_list(json_string_value(tag)))
			(void)json_array_append(ctx, tag);
	}
}

static int copy_list_tags(const struct cli *cli, const char *source, json_t *out, struct err *err)
{
	auto_credentials struct credentials credentials = {0};
	struct reference from;
	struct inquiry inquiry = {.cli = cli,
				  .after = STR(""),
				  .credentials = &credentials,
				  .hear = copy_hear_tags,
				  .ctx = out};

	if (copy_read_repository(source, &from, err) < 0 ||
	    access_for(str_of(source), cli->cancel, &credentials, err) < 0)
		return -1;
	inquiry.host = from.host;
	inquiry.path = from.path;
	return inquiry_names(&inquiry, err);
}

/* Every tag is tried; the first failure is the command's. */
static int copy_all_tags(struct cli *cli, struct err *err)
{
	AUTO(json) json_t *tags = json_array();
	struct reference to;
	struct err first = {0};
	const json_t *tag;
	size_t i;

	if (copy_read_repository(cli->args[1], &to, err) < 0 ||
	    copy_list_tags(cli, cli->args[0], tags, err) < 0)
		return err_ctx(err, "copy %s", cli->args[0]);
	json_array_foreach(tags, i, tag)
	{
		auto_free char *source = NULL;
		auto_free char *dest = NULL;
		struct err why = {0};

		if (first.kind == ERR_CANCELLED)
			break;
		if (asprintf(&source, "%s:%s", cli->args[0], json_string_value(tag)) < 0 ||
		    asprintf(&dest, "%s:%s", cli->args[1], json_string_value(tag)) < 0)
			abort();
		if (copy_one(cli, source, dest, json_string_value(tag), &why) < 0 &&
		    (first.kind == ERR_NONE || why.kind == ERR_CANCELLED))
			first = why;
	}
	*err = first;
	return first.kind == ERR_NONE ? 0 : -1;
}

static int run(struct cli *cli, struct err *err)
{
	if (cli_has(cli, "all-tags"))
		return copy_all_tags(cli, err);
	return copy_one(cli, cli->args[0], cli->args[1], NULL, err);
}

static const struct cli_option options[] = {
	{"platform", "OS/ARCH|all",
	 "of several images that of this platform, or with all the index", false},
	{"compression", "KIND",
	 "convert the layers to zstd or gzip; by default they stay as they are", false},
	{"referrers", NULL, "with what is about the image: signatures, bills of materials", false},
	{"all-tags", NULL, "all that a registry's repository has, to another repository", false},
	PROGRESS_OPTION,
	ACCESS_OPTIONS_REGISTRY,
	CLI_OPTION_JSON,
	CLI_OPTION_DATA,
	CLI_OPTION_HELP,
};

const struct cli_command cli_copy = {
	.name = "copy",
	.arguments = "SOURCE DEST",
	.summary = "copy an image from anywhere to anywhere, and print its digest",
	.detail =
		"SOURCE and DEST are a registry's [HOST[:PORT]/]NAME[:TAG], or a place as hearth\n"
		"import and hearth export know it. SOURCE may be a tag that was given here, too.\n"
		"Blobs stay as they are, and are kept in the store until they are collected.\n",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.args_min = 2,
	.args_max = 2,
	.run = run,
};
