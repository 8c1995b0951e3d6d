/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_bake.c - `hearth bake`: a spec on disk becomes an image. */
#include "api/access.h"
#include "api/cli.h"
#include "api/export.h"
#include "api/human.h"
#include "api/progress.h"
#include "api/registries.h"
#include "api/secret_option.h"
#include "api/send.h"
#include "api/settings.h"
#include "api/spec_file.h"
#include "bake/bake.h"
#include "layers/base/clock.h"
#include "layers/digest_json.h"
#include "layers/lease.h"
#include "registry/tag.h"

#include <string.h>
#include <sys/time.h>

struct cmd_bake {
	struct cli *cli;
	struct store *store;
	struct lease *lease; /* until the image has its names */
	struct progress *progress;
	json_t *names;              /* owned: of --tag */
	struct network_host *hosts; /* owned */
	size_t host_count;
	struct secrets secrets;
	int contextfd;
	size_t from_step;         /* 0 for none */
	uint64_t max_layer_bytes; /* 0 for the default */
	struct credentials credentials;
	struct proxies proxies;
	struct bake_result result;
	struct registries registries;
	int64_t started_ms;
};

static bool bake_has_host(const struct cmd_bake *cmd, const char *name)
{
	for (size_t i = 0; i < cmd->host_count; i++) {
		if (strcmp(cmd->hosts[i].name, name) == 0)
			return true;
	}
	return false;
}

/* The hosts of the command line; then those of the configuration with other names. */
static int bake_read_hosts(struct cmd_bake *cmd, struct err *err)
{
	const struct config *config = &cmd->cli->config;
	struct cli_value hosts = cli_list(cmd->cli, "add-host");

	cmd->hosts = calloc(hosts.count + config->host_count + 1, sizeof(*cmd->hosts));
	if (!cmd->hosts)
		abort();
	for (size_t i = 0; i < hosts.count; i++) {
		if (network_host_parse(str_of(hosts.at[i]), &cmd->hosts[i], err) < 0)
			return err_ctx(err, "--add-host %s", hosts.at[i]);
	}
	cmd->host_count = hosts.count;
	for (size_t i = 0; i < config->host_count; i++) {
		if (!bake_has_host(cmd, config->hosts[i].name))
			cmd->hosts[cmd->host_count++] = config->hosts[i];
	}
	return 0;
}

/* A bake's own time, all of its steps: when it is over the cancel is raised. */
static int bake_set_deadline(const struct cmd_bake *cmd, struct err *err)
{
	int64_t ms = cmd->cli->config.bakes_timeout_ms;
	const struct itimerval timer = {.it_value = {ms / 1000, (ms % 1000) * 1000}};

	if (ms > 0 && setitimer(ITIMER_REAL, &timer, NULL) < 0)
		return err_os(err, errno, "set a timer");
	return 0;
}

/* Whether the deadline or the user raised the cancel. */
static int bake_judge_cancel(const struct cmd_bake *cmd, struct err *err)
{
	int64_t ms = cmd->cli->config.bakes_timeout_ms;

	if (err->kind == ERR_CANCELLED && ms > 0 && clock_monotonic_ms() - cmd->started_ms >= ms)
		return err_set(err, ERR_TIMEOUT,
			       "not done after %lld ms, which bakes.timeoutMs of the configuration "
			       "allows",
			       (long long)ms);
	return -1;
}

static int bake_open_progress(struct cmd_bake *cmd, struct err *err)
{
	int columns;
	bool terminal = settings_terminal(&columns);

	return progress_open(cli_text(cmd->cli, "progress"), terminal, columns, cmd->cli->cancel,
			     &cmd->progress, err);
}

/* Names are judged before a long bake, not after it; *out_names are their canonical texts. */
static int bake_check_names(const struct cli *cli, json_t **out_names, struct err *err)
{
	struct cli_value tags = cli_list(cli, "tag");
	const char *output = cli_text(cli, "output");
	AUTO(json) json_t *names = json_array();

	if (progress_check(cli_text(cli, "progress"), err) < 0)
		return -1;
	for (size_t i = 0; i < tags.count; i++) {
		auto_buf struct buf name = BUF_INIT(REFERENCE_TEXT_MAX);

		if (reference_parse_name(str_of(tags.at[i]), &name, err) < 0)
			return err_ctx(err, "--tag");
		(void)json_array_append_new(names, json_from_str(buf_str(&name)));
	}
	if (output && export_check(output, false, err) < 0)
		return err_ctx(err, "--output");
	*out_names = steal_ptr(&names);
	return 0;
}

static int bake_output(struct cmd_bake *cmd, const struct digest *image, struct err *err)
{
	const char *output = cli_text(cmd->cli, "output");
	const struct export_spec spec = {.to = output, .image = *image, .names = cmd->names};

	if (!output)
		return 0;
	if (lease_add(cmd->lease, image, err) < 0 || lease_rest(cmd->lease, err) < 0)
		return -1;
	if (export_image(cmd->cli, cmd->store, cmd->progress, &spec, err) < 0)
		return err_ctx(err, "--output %s", output);
	return 0;
}

/* What is pushed to: the spec's references and the command's. The caller frees the array. */
static struct str *bake_pushes(const struct cli *cli, const struct spec *spec, size_t *out_count)
{
	struct cli_value given = cli_list(cli, "push");
	struct str *all = calloc(spec->push_count + given.count + 1, sizeof(*all));

	if (!all)
		abort();
	for (size_t i = 0; i < spec->push_count; i++)
		all[i] = spec->push[i];
	for (size_t i = 0; i < given.count; i++)
		all[spec->push_count + i] = str_of(given.at[i]);
	*out_count = spec->push_count + given.count;
	return all;
}

static int bake_check_pushes(const struct cli *cli, const struct spec *spec, struct err *err)
{
	size_t count;
	auto_free struct str *all = bake_pushes(cli, spec, &count);

	for (size_t i = 0; i < count; i++) {
		auto_buf struct buf canonical = BUF_INIT(REFERENCE_TEXT_MAX);

		if (send_name(all[i], &canonical, err) < 0)
			return err_ctx(err, "push");
		if (memchr(canonical.ptr, '@', canonical.len))
			return err_set(err, ERR_INVALID,
				       "push: %s: nobody knows the image's digest yet",
				       canonical.ptr);
	}
	return 0;
}

static int bake_push(struct cmd_bake *cmd, const struct spec *spec, const struct digest *image,
		     struct err *err)
{
	const struct send send = {
		.cli = cmd->cli, .store = cmd->store, .progress = cmd->progress, .image = *image};
	size_t count;
	auto_free struct str *all = bake_pushes(cmd->cli, spec, &count);

	return send_image_to_all(&send, all, count, err);
}

static int bake_keep(struct cmd_bake *cmd, const struct spec *spec, const struct digest *image,
		     struct err *err)
{
	const struct tag tag = {
		.target = *image,
		.manifest = *image,
		.platform = spec->platform,
		.at_ms = clock_now_ms(),
	};

	for (size_t i = 0; i < json_array_size(cmd->names); i++) {
		struct str name = json_str(json_array_get(cmd->names, i));

		if (tag_set(cmd->store, name, &tag, err) < 0)
			return err_ctx(err, "--tag " STR_FMT, STR_ARG(name));
	}
	if (bake_output(cmd, image, err) < 0)
		return -1;
	return bake_push(cmd, spec, image, err);
}

static json_t *bake_json(const struct cmd_bake *cmd, const struct bake_result *result)
{
	json_t *value = json_object();

	digest_json_set(value, "digest", &result->image);
	json_set_size(value, "sizeBytes", result->size);
	json_set_size(value, "layers", result->layers);
	json_set_size(value, "steps", result->steps);
	json_set_size(value, "cachedSteps", result->cached_steps);
	if (result->linked_bytes > 0)
		json_set_size(value, "linkedBytes", result->linked_bytes);
	json_set_int(value, "durationMs", clock_monotonic_ms() - cmd->started_ms);
	return value;
}

static json_t *bake_error_json(const struct bake_result *result, const struct err *why)
{
	json_t *value = json_object();
	json_t *error = json_object();

	json_set_text(error, "code", err_name(why->kind));
	json_set_text(error, "message", why->text);
	if (result->failed_step > 0)
		json_set_size(error, "step", result->failed_step);
	if (result->failed_line > 0)
		json_set_size(error, "line", result->failed_line);
	if (why->kind == ERR_STEP)
		json_set_int(error, "exitCode", result->exit_code);
	(void)json_object_set_new(value, "error", error);
	return value;
}

static void bake_print_json(json_t *owned)
{
	human_json(owned, stdout);
	json_decref(owned);
}

/* Words for people go to standard error; the digest is last on standard output. */
static void bake_print(const struct cmd_bake *cmd, const struct bake_result *result)
{
	char digest[DIGEST_TEXT_MAX];
	char size[HUMAN_TEXT_MAX];
	char time[HUMAN_TEXT_MAX];
	const char *progress = cli_text(cmd->cli, "progress");

	if (cli_has(cmd->cli, "json")) {
		bake_print_json(bake_json(cmd, result));
		return;
	}
	if (!progress || strcmp(progress, "json") != 0)
		(void)fprintf(stderr, "%zu step%s, %zu cached; %zu layer%s, %s; %s\n",
			      result->steps, result->steps == 1 ? "" : "s", result->cached_steps,
			      result->layers, result->layers == 1 ? "" : "s",
			      human_size(result->size, size),
			      human_duration(clock_monotonic_ms() - cmd->started_ms, time));
	(void)printf("%s\n", digest_format(&result->image, digest));
}

static int bake_open_all(struct cmd_bake *cmd, const struct spec *spec, struct err *err)
{
	if (bake_read_hosts(cmd, err) < 0 || secret_option_read(cmd->cli, &cmd->secrets, err) < 0 ||
	    access_for(spec->base, cmd->cli->cancel, &cmd->credentials, err) < 0 ||
	    access_proxies(&cmd->proxies, err) < 0 ||
	    registries_open(cmd->cli, spec->base, &cmd->registries, err) < 0 ||
	    cli_open_store(cmd->cli, &cmd->store, err) < 0 ||
	    lease_open(cmd->store, &cmd->lease, err) < 0 ||
	    spec_file_open_context(cmd->cli, spec, cmd->store, &cmd->contextfd, err) < 0)
		return -1;
	return bake_open_progress(cmd, err);
}

static int bake_read_numbers(struct cmd_bake *cmd, struct err *err)
{
	const char *from = cli_text(cmd->cli, "from-step");

	if (access_layer_limit(cmd->cli, &cmd->max_layer_bytes, err) < 0)
		return -1;
	return from ? cli_read_step("--from-step", from, &cmd->from_step, err) : 0;
}

/* How to bake, by all that is open. */
static struct bake_options bake_options_of(const struct cmd_bake *cmd)
{
	const char *runtime = cli_text(cmd->cli, "runtime");

	return (struct bake_options){
		.store = cmd->store,
		.lease = cmd->lease,
		.worker_path = cmd->cli->worker_path,
		.puller_path = cmd->cli->puller_path,
		.agent_path = cmd->cli->agent_path,
		.contextfd = cmd->contextfd,
		.no_cache = cli_has(cmd->cli, "no-cache"),
		.from_step = cmd->from_step,
		.pull = cli_has(cmd->cli, "pull"),
		.plain_http = cli_has(cmd->cli, "plain-http"),
		.ca_file = cli_text(cmd->cli, "ca-file"),
		.max_layer_bytes = cmd->max_layer_bytes,
		.registry_user = str_of(cmd->credentials.user),
		.registry_password = &cmd->credentials.password,
		.places = &cmd->registries.places,
		.runtime = runtime ? runtime : cmd->cli->config.runtime,
		.gc = &cmd->cli->config.gc,
		.hosts = cmd->hosts,
		.host_count = cmd->host_count,
		.secrets = &cmd->secrets,
		.proxies = &cmd->proxies,
		.event = progress_event,
		.event_ctx = cmd->progress,
		.cancel = cmd->cli->cancel,
	};
}

static int bake_spec(struct cmd_bake *cmd, const struct spec *spec, struct err *err)
{
	struct bake_options options;

	if (bake_read_numbers(cmd, err) < 0 || bake_set_deadline(cmd, err) < 0 ||
	    bake_open_all(cmd, spec, err) < 0)
		return -1;
	options = bake_options_of(cmd);
	if (bake_run(spec, &options, &cmd->result, err) < 0 ||
	    bake_keep(cmd, spec, &cmd->result.image, err) < 0) {
		(void)bake_judge_cancel(cmd, err);
		return -1;
	}
	progress_close(steal_ptr(&cmd->progress));
	bake_print(cmd, &cmd->result);
	return 0;
}

static int bake_set_compression(const struct cli *cli, struct spec *spec, struct err *err)
{
	const char *codec = cli_text(cli, "compression");

	if (codec && layer_codec_parse(str_of(codec), &spec->compression, err) < 0)
		return err_ctx(err, "--compression");
	return 0;
}

static int run(struct cli *cli, struct err *err)
{
	auto_spec struct spec spec = {0};
	struct cmd_bake cmd = {.cli = cli, .contextfd = -1, .started_ms = clock_monotonic_ms()};
	int result = bake_check_names(cli, &cmd.names, err);

	if (result == 0)
		result = spec_file_read(cli, &spec, err);
	if (result == 0)
		result = bake_set_compression(cli, &spec, err);
	if (result == 0)
		result = bake_check_pushes(cli, &spec, err);
	if (result == 0)
		result = bake_spec(&cmd, &spec, err);
	if (result < 0 && cli_has(cli, "json"))
		bake_print_json(bake_error_json(&cmd.result, err));
	progress_close(cmd.progress);
	lease_close(cmd.lease);
	store_close(cmd.store);
	auto_close_release(&cmd.contextfd);
	secret_done(&cmd.credentials.password);
	proxies_done(&cmd.proxies);
	registries_done(&cmd.registries);
	secrets_done(&cmd.secrets);
	json_decref(cmd.names);
	free(cmd.hosts);
	return result < 0 ? err_ctx(err, "bake %s", cli->args[0]) : 0;
}

static const struct cli_option options[] = {
	SPEC_FILE_OPTIONS,
	{"add-host", "NAME=ADDR[:PORT]", "let steps find NAME at this address", true},
	SECRET_OPTION,
	{"pull", NULL, "ask the registry although the base is here", false},
	{"no-cache", NULL, "run every step, cached or not", false},
	{"from-step", "N", "run step N and those after it, cached or not", false},
	{"compression", "KIND", "store the image's own layers as zstd (the default) or gzip",
	 false},
	{"tag", "NAME[:TAG]",
	 "name the image in the store; as localhost/NAME:TAG the daemon's registry has it, too",
	 true},
	{"push", "REF", "push the image there, beside the spec's `push`", true},
	{"output", "DEST", "also write the image, as hearth export does", false},
	PROGRESS_OPTION,
	ACCESS_OPTIONS,
	{"runtime", "NAME", "crun, runc, or the path of another OCI runtime", false},
	CLI_OPTION_JSON,
	CLI_OPTION_DATA,
	CLI_OPTION_HELP,
};

const struct cli_command cli_bake = {
	.name = "bake",
	.arguments = "SPEC",
	.summary = "bake an image from a spec, and print its digest",
	.detail = "SPEC is a file, or - for standard input: an agent object or its image as JSON.\n"
		  "  {\"base\": \"debian:bookworm-slim\", \"steps\": [\"RUN apt-get update\"]}\n"
		  "Steps are RUN, COPY, ENV and WORKDIR. A step that ran before is CACHED.\n"
		  "\n"
		  "Exit codes: 0 done, 1 a step's command failed, 64 the command line, or a key\n"
		  "or value of the spec, is wrong, 65 a step is refused, or input is too large or\n"
		  "corrupt, 66 not found, 69 the host or a registry cannot, 70 internal, or\n"
		  "nobody reads the result, 74 the disk is full, 75 try again later, 77 not\n"
		  "allowed, 130 cancelled.\n",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.args_min = 1,
	.args_max = 1,
	.run = run,
};
