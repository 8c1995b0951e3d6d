/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_gc.c - `hearth gc`: what nothing needs goes, and its space comes back. */
#include "api/cli.h"
#include "api/human.h"
#include "bake/gc.h"
#include "registry/mirror_trim.h"

struct cmd_gc {
	struct cli *cli;
	json_t *images;    /* owned: those that went, for --json */
	uint64_t mirrored; /* bytes above upstreams' own limits */
};

static void gc_hear(void *ctx, const struct gc_event *event)
{
	struct cmd_gc *cmd = ctx;
	auto_free char *name = human_text(str_of(event->name));
	char text[DIGEST_TEXT_MAX];
	char hex[DIGEST_HEX_MAX];

	if (cli_has(cmd->cli, "json")) {
		(void)json_array_append_new(cmd->images,
					    json_string(digest_format(event->digest, text)));
		return;
	}
	(void)printf("image %.12s%s%s\n", digest_hex(event->digest, hex), *name ? " " : "", name);
}

static uint64_t gc_freed(const struct gc_result *result)
{
	return result->collected.chunk_bytes + result->collected.tree_bytes + result->cache_bytes;
}

static void gc_print_json(const struct cmd_gc *cmd, const struct gc_result *result)
{
	const struct collect_result *collected = &result->collected;
	AUTO(json) json_t *value = json_object();

	json_set_bool(value, "dryRun", cli_has(cmd->cli, "dry-run"));
	(void)json_object_set(value, "images", cmd->images);
	json_set_size(value, "steps", result->steps);
	json_set_size(value, "contexts", result->contexts);
	json_set_size(value, "records", result->records);
	json_set_size(value, "mirroredBytes", cmd->mirrored + result->mirrored);
	json_set_size(value, "blobs", collected->blobs);
	json_set_size(value, "blobsBytes", collected->chunk_bytes);
	json_set_size(value, "trees", collected->trees);
	json_set_size(value, "treesBytes", collected->tree_bytes);
	json_set_size(value, "freedBytes", gc_freed(result));
	json_set_size(value, "caches", result->caches);
	json_set_size(value, "cachesBytes", result->cache_bytes);
	json_set_size(value, "punchedBytes", result->punched);
	json_set_size(value, "missingBytes", result->missing);
	json_set_bool(value, "incomplete", collected->chunks_left);
	human_json(value, stdout);
}

static void gc_print(const struct cmd_gc *cmd, const struct gc_result *result)
{
	const struct collect_result *collected = &result->collected;
	char blobs[HUMAN_TEXT_MAX];
	char trees[HUMAN_TEXT_MAX];
	char all[HUMAN_TEXT_MAX];
	char caches[HUMAN_TEXT_MAX];

	if (result->missing > 0)
		(void)fprintf(stderr,
			      "hearth: %s too little: what is left has a tag or is in use\n",
			      human_size(result->missing, all));
	if (cli_has(cmd->cli, "json")) {
		gc_print_json(cmd, result);
		return;
	}
	if (cmd->mirrored + result->mirrored > 0)
		(void)printf("%s of mirrored images %s\n",
			     human_size(cmd->mirrored + result->mirrored, all),
			     cli_has(cmd->cli, "dry-run") ? "would go before" : "went");
	(void)printf("%ju images, %ju steps, %ju blobs (%s), %ju trees (%s), %ju caches (%s)\n",
		     (uintmax_t)result->images, (uintmax_t)result->steps,
		     (uintmax_t)collected->blobs, human_size(collected->chunk_bytes, blobs),
		     (uintmax_t)collected->trees, human_size(collected->tree_bytes, trees),
		     (uintmax_t)result->caches, human_size(result->cache_bytes, caches));
	(void)printf("%s %s\n", human_size(gc_freed(result), all),
		     cli_has(cmd->cli, "dry-run") ? "would be freed" : "freed");
	if (result->punched > 0)
		(void)printf("%s of the databases' files went back to the disk\n",
			     human_size(result->punched, all));
	if (collected->chunks_left)
		(void)fprintf(stderr, "hearth: a bake or a pull is writing for long; what it might "
				      "use is left to the next gc\n");
}

static const struct {
	const char *name;
	int64_t ms;
} gc_units[] = {
	{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}, {"w", 604800000},
};

/* "36h", "30d"; a number without a unit is refused, since nobody could know its unit. */
static int gc_read_duration(const char *text, int64_t *out, struct err *err)
{
	struct str rest = str_of(text);
	uint64_t number;

	if (str_take_number(&rest, &number) && number <= INT32_MAX) {
		for (size_t i = 0; i < sizeof(gc_units) / sizeof(gc_units[0]); i++) {
			if (str_equal(rest, str_of(gc_units[i].name))) {
				*out = (int64_t)number * gc_units[i].ms;
				return 0;
			}
		}
	}
	return err_set(err, ERR_INVALID,
		       "--unused-for %s: expected a number with ms, s, m, h, d or w, as in 30d",
		       text);
}

static int gc_read_count(const char *text, int64_t *out, struct err *err)
{
	uint64_t number;

	if (!str_parse_number(str_of(text), &number) || number > INT32_MAX)
		return err_set(err, ERR_INVALID, "--keep %s: expected a number of images", text);
	*out = (int64_t)number;
	return 0;
}

static int gc_read_policy(const struct cli *cli, struct gc_policy *out, struct err *err)
{
	const char *keep = cli_text(cli, "keep");
	const char *unused = cli_text(cli, "unused-for");

	*out = cli->config.gc;
	out->all = cli_has(cli, "all");
	if (keep && gc_read_count(keep, &out->keep, err) < 0)
		return -1;
	if (cli_read_size(cli, "max-size", &out->max_bytes, err) < 0 ||
	    cli_read_size(cli, "min-free", &out->min_free_bytes, err) < 0)
		return -1;
	return unused ? gc_read_duration(unused, &out->unused_ms, err) : 0;
}

/* As a daemon would: what is above an upstream's maxBytes, and nothing where it has none. */
static int gc_trim_mirror(struct cmd_gc *cmd, const struct gc_options *options, struct err *err)
{
	const struct config *config = &cmd->cli->config;
	auto_free struct mirror_upstream_spec *upstreams =
		calloc(config->upstream_count + 1, sizeof(*upstreams));
	const struct mirror_trim_spec spec = {
		.store = options->store,
		.upstreams = upstreams,
		.upstream_count = config->upstream_count,
		.dry_run = options->dry_run,
		.cancel = options->cancel,
	};

	if (!upstreams)
		abort();
	for (size_t i = 0; i < config->upstream_count; i++)
		upstreams[i] = (struct mirror_upstream_spec){
			.host = str_of(config->upstreams[i].host),
			.max_bytes = config->upstreams[i].max_bytes,
		};
	return mirror_trim_store(&spec, &cmd->mirrored, err);
}

static int run(struct cli *cli, struct err *err)
{
	AUTO(json) json_t *images = json_array();
	AUTO(store) struct store *store = NULL;
	struct cmd_gc cmd = {.cli = cli, .images = images};
	struct gc_options options = {
		.dry_run = cli_has(cli, "dry-run"),
		.event = gc_hear,
		.event_ctx = &cmd,
		.cancel = cli->cancel,
	};
	struct gc_result result = {0};
	int found;

	if (gc_read_policy(cli, &options.policy, err) < 0)
		return err_ctx(err, "gc");
	found = cli_find_store(cli, &store, err);
	options.store = store;
	if (found < 0 || (found == 1 && (gc_trim_mirror(&cmd, &options, err) < 0 ||
					 gc_run(&options, &result, err) < 0)))
		return err_ctx(err, "gc");
	gc_print(&cmd, &result);
	return 0;
}

static const struct cli_option options[] = {
	{"keep", "N", "remove all but the newest N images of each slug", false},
	{"unused-for", "DURATION", "remove what was not used for so long", false},
	{"max-size", "SIZE", "while the store takes more, remove what is cheapest to make again",
	 false},
	{"min-free", "SIZE", "the same while its file system has less room", false},
	{"all", NULL, "remove everything that no tag needs", false},
	{"dry-run", NULL, "only say what would go", false},
	CLI_OPTION_JSON,
	CLI_OPTION_DATA,
	CLI_OPTION_HELP,
};

const struct cli_command cli_gc = {
	.name = "gc",
	.arguments = "",
	.summary = "remove what nothing needs, and give its space back",
	.detail =
		"What no tag, image or cached step names always goes. With options more goes:\n"
		"images without a tag, and cached steps that no image needs. For a size, what is\n"
		"cheapest to make again goes first: unpacked layers, caches of RUN's mounts, what\n"
		"is mirrored, steps, images. What has a tag, or is in use by a running bake, pull\n"
		"or push, never goes, and where that is too much gc says how much is missing;\n"
		"hearth rm takes a tag away. Only --keep takes it, from an agent's older\n"
		"versions: those with an open session stay, and so does the newest image.\n"
		"\n"
		"Of a mirrored registry goes what is above its maxBytes in the configuration,\n"
		"what was used longest ago first; a daemon does this by itself.\n"
		"\n"
		"A SIZE is a number of bytes, or has a unit: 500M, 20GB, 20Gi. A DURATION has a\n"
		"unit: 90m, 36h, 30d, 4w. What no option says, the configuration's gc says.\n",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.args_min = 0,
	.args_max = 0,
	.run = run,
};
