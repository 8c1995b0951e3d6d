/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_mirror.c - `hearth mirror`: how upstreams fare, and images fetched beforehand. */
#include "api/await.h"
#include "api/human.h"

#include <inttypes.h>
#include <string.h>

#define MIRROR_QUOTA_MAX ((size_t)48)
#define MIRROR_WARM_MAX 256 /* images of one command */

static uint64_t mirror_size(const json_t *upstream, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(upstream, key));
}

/* "76 of 100", where the upstream says so. */
static const char *mirror_quota(const json_t *upstream, char out[static MIRROR_QUOTA_MAX])
{
	const json_t *remaining = json_object_get(upstream, "quotaRemaining");
	const json_t *limit = json_object_get(upstream, "quotaLimit");

	if (!remaining)
		return "-";
	if (!limit)
		(void)snprintf(out, MIRROR_QUOTA_MAX, "%lld",
			       (long long)json_integer_value(remaining));
	else
		(void)snprintf(out, MIRROR_QUOTA_MAX, "%lld of %lld",
			       (long long)json_integer_value(remaining),
			       (long long)json_integer_value(limit));
	return out;
}

static void mirror_print_row(const json_t *upstream, int width)
{
	char saved[HUMAN_TEXT_MAX];
	char held[HUMAN_TEXT_MAX];
	char quota[MIRROR_QUOTA_MAX];

	(void)printf("%-*s  %-8s %12s %9" PRIu64 " %9" PRIu64 " %9s %9s\n", width,
		     await_text(upstream, "host"), await_text(upstream, "health"),
		     mirror_quota(upstream, quota), mirror_size(upstream, "hits"),
		     mirror_size(upstream, "misses"),
		     human_size(mirror_size(upstream, "savedBytes"), saved),
		     human_size(mirror_size(upstream, "heldBytes"), held));
}

/* Why one is not healthy, and for how long it is not asked. */
static void mirror_print_trouble(const json_t *upstream)
{
	auto_free char *why = human_text(json_str(json_object_get(upstream, "error")));
	uint64_t retry_ms = mirror_size(upstream, "retryMs");
	char time[HUMAN_TEXT_MAX];

	if (!*why)
		return;
	(void)printf("%s: %s%s%s\n", await_text(upstream, "host"), why,
		     retry_ms > 0 ? "; it is asked again in " : "",
		     retry_ms > 0 ? human_duration((int64_t)retry_ms, time) : "");
}

static void mirror_print(const json_t *list)
{
	int width = (int)strlen("UPSTREAM");

	if (json_array_size(list) == 0) {
		(void)fputs("no upstream is configured: the daemon's configuration names them as "
			    "mirror.upstreams\n",
			    stderr);
		return;
	}
	for (size_t i = 0; i < json_array_size(list); i++)
		width = human_widen(width, await_text(json_array_get(list, i), "host"));
	(void)printf("%-*s  %-8s %12s %9s %9s %9s %9s\n", width, "UPSTREAM", "HEALTH", "QUOTA",
		     "HITS", "MISSES", "SAVED", "HELD");
	for (size_t i = 0; i < json_array_size(list); i++)
		mirror_print_row(json_array_get(list, i), width);
	for (size_t i = 0; i < json_array_size(list); i++)
		mirror_print_trouble(json_array_get(list, i));
}

static int mirror_tell(const struct cli *cli, struct err *err)
{
	AUTO(json) json_t *args = json_object();
	AUTO(json) json_t *status = NULL;
	const struct call_spec spec = {.method = "mirror.status", .args = args};

	if (cli->arg_count != 1)
		return err_set(err, ERR_INVALID, "mirror status: unexpected argument %s",
			       cli->args[1]);
	if (call_daemon(cli, &spec, &status, err) < 0)
		return -1;
	if (cli_has(cli, "json"))
		human_json(status, stdout);
	else
		mirror_print(json_object_get(status, "upstreams"));
	return 0;
}

static int mirror_warm_one(const struct cli *cli, const char *reference, json_t *list,
			   struct err *err)
{
	AUTO(json) json_t *args = json_object();
	AUTO(json) json_t *warmed = NULL;
	const struct call_spec spec = {.method = "mirror.warm", .args = args};
	char size[HUMAN_TEXT_MAX];

	json_set_text(args, "reference", reference);
	json_set_text(args, "platform", cli_text(cli, "platform"));
	(void)fprintf(stderr, "warming %s\n", reference);
	if (call_daemon(cli, &spec, &warmed, err) < 0)
		return err_ctx(err, "warm %s", reference);
	if (list)
		return json_array_append(list, warmed);
	(void)fprintf(stderr, "%s is here: %" PRIu64 " of %" PRIu64 " blobs were fetched, %s\n",
		      reference, mirror_size(warmed, "fetchedBlobs"), mirror_size(warmed, "blobs"),
		      human_size(mirror_size(warmed, "fetchedBytes"), size));
	(void)printf("%s\n", await_text(warmed, "digest"));
	return 0;
}

/* All are tried; the first failure is the command's. */
static int mirror_warm_all(const struct cli *cli, struct err *err)
{
	AUTO(json) json_t *list = cli_has(cli, "json") ? json_array() : NULL;
	struct err first = {0};

	if (cli->arg_count < 2)
		return err_set(err, ERR_INVALID, "mirror warm: which image? expected REF...");
	for (size_t i = 1; i < cli->arg_count && first.kind != ERR_CANCELLED; i++) {
		struct err why = {0};

		if (mirror_warm_one(cli, cli->args[i], list, &why) < 0 &&
		    (first.kind == ERR_NONE || why.kind == ERR_CANCELLED))
			first = why;
	}
	if (list)
		human_json(list, stdout);
	if (first.kind == ERR_NONE)
		return 0;
	*err = first;
	return -1;
}

static int run(struct cli *cli, struct err *err)
{
	if (strcmp(cli->args[0], "status") == 0)
		return mirror_tell(cli, err);
	if (strcmp(cli->args[0], "warm") == 0)
		return mirror_warm_all(cli, err);
	return err_set(err, ERR_INVALID, "mirror %s: expected status or warm REF...", cli->args[0]);
}

static const struct cli_option options[] = {
	{"platform", "OS/ARCH|all", "warm what is for this platform; the daemon's by default",
	 false},
	CLI_OPTION_JSON,
	CLI_OPTION_DATA,
	CLI_OPTION_HELP,
};

const struct cli_command cli_mirror = {
	.name = "mirror",
	.arguments = "status | warm REF...",
	.summary = "tell how upstreams fare, and fetch images before they are asked for",
	.detail = "The daemon stands before the registries of mirror.upstreams in its\n"
		  "configuration. status tells for each whether it answers, what it says is left\n"
		  "of its quota, how many requests it was spared, and the bytes that were served\n"
		  "and not fetched. warm fetches images whole, as docker.io/library/alpine:3.20.\n",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.args_min = 1,
	.args_max = 1 + MIRROR_WARM_MAX,
	.run = run,
};
