/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_fsck.c - `hearth fsck`: the store is read, compared, and mended. */
#include "api/cli.h"
#include "api/human.h"
#include "bake/fsck.h"

#include <unistd.h>

struct cmd_fsck {
	const struct cli *cli;
	json_t *findings; /* owned */
	bool shown;       /* a line of progress is on the terminal */
};

static void fsck_hide_progress(struct cmd_fsck *cmd)
{
	if (cmd->shown)
		(void)fprintf(stderr, "\r\033[K");
	cmd->shown = false;
}

static void fsck_hear_progress(void *ctx, uint64_t done, uint64_t total)
{
	struct cmd_fsck *cmd = ctx;
	char texts[2][HUMAN_TEXT_MAX];

	if (!isatty(STDERR_FILENO))
		return;
	(void)fprintf(stderr, "\r\033[Kread %s of %s", human_size(done, texts[0]),
		      human_size(total > done ? total : done, texts[1]));
	cmd->shown = true;
}

static void fsck_hear(void *ctx, const struct fsck_finding *finding)
{
	static const struct digest none;
	struct cmd_fsck *cmd = ctx;
	bool named = !digest_equal(&finding->digest, &none);
	auto_free char *name = human_text(str_of(finding->name));
	auto_free char *text = human_text(str_of(finding->text));
	char digest[DIGEST_TEXT_MAX];

	digest_format(&finding->digest, digest);
	if (cli_has(cmd->cli, "json")) {
		json_t *value = json_object();

		json_set_text(value, "kind", fsck_kind_name(finding->kind));
		json_set_bool(value, "damage", fsck_is_damage(finding->kind));
		(void)json_object_set_new(value, "digest",
					  named ? json_string(digest) : json_null());
		(void)json_object_set_new(value, "name",
					  *finding->name ? json_from_str(str_of(finding->name))
							 : json_null());
		json_set_text(value, "text", finding->text);
		(void)json_array_append_new(cmd->findings, value);
		return;
	}
	fsck_hide_progress(cmd);
	(void)printf("%s%s%s%s%s: %s\n", fsck_kind_name(finding->kind), *name ? " " : "", name,
		     named ? " " : "", named ? digest : "", text);
}

static uint64_t fsck_verified(const struct fsck_result *result)
{
	return result->bytes + result->tar_bytes + result->tree_bytes;
}

/* The rate of the whole run; bytes of a chunk, of its tar and of its tree count each. */
static void fsck_print_rate(const struct fsck_result *result)
{
	uint64_t ms = result->ms > 0 ? (uint64_t)result->ms : 1;
	char texts[5][HUMAN_TEXT_MAX];

	(void)printf("read and verified %s in %.1fs (%s/s): chunks %s, layers inflated %s, "
		     "trees %s\n",
		     human_size(fsck_verified(result), texts[0]), (double)ms / 1000,
		     human_size(fsck_verified(result) * 1000 / ms, texts[1]),
		     human_size(result->bytes, texts[2]), human_size(result->tar_bytes, texts[3]),
		     human_size(result->tree_bytes, texts[4]));
}

static void fsck_print(struct cmd_fsck *cmd, const struct fsck_result *result)
{
	char size[HUMAN_TEXT_MAX];

	fsck_hide_progress(cmd);
	if (cli_has(cmd->cli, "json")) {
		AUTO(json) json_t *value = json_object();

		json_set_bool(value, "clean", result->damaged == 0);
		json_set_bool(value, "dryRun", cli_has(cmd->cli, "dry-run"));
		json_set_size(value, "chunks", result->chunks);
		json_set_size(value, "bytes", result->bytes);
		json_set_size(value, "blobs", result->blobs);
		json_set_size(value, "tarBytes", result->tar_bytes);
		json_set_size(value, "treeBytes", result->tree_bytes);
		json_set_size(value, "verifiedBytes", fsck_verified(result));
		json_set_int(value, "hashMs", result->hash_ms);
		json_set_int(value, "ms", result->ms);
		(void)json_object_set(value, "findings", cmd->findings);
		human_json(value, stdout);
		return;
	}
	fsck_print_rate(result);
	(void)printf("%ju chunks, %s stored, %ju blobs: %s\n", (uintmax_t)result->chunks,
		     human_size(result->bytes, size), (uintmax_t)result->blobs,
		     result->damaged == 0 ? "clean" : "damaged");
}

static int fsck_conclude(const struct cmd_fsck *cmd, const struct fsck_result *result,
			 struct err *err)
{
	if (result->damaged == 0)
		return 0;
	if (cli_has(cmd->cli, "dry-run"))
		return err_set(err, ERR_CORRUPT,
			       "the store is damaged; hearth fsck without --dry-run mends it");
	return err_set(err, ERR_CORRUPT,
		       "the store was damaged; what is lost is gone from it, and the next bake or "
		       "pull makes it again");
}

static int run(struct cli *cli, struct err *err)
{
	AUTO(json) json_t *findings = json_array();
	AUTO(store) struct store *store = NULL;
	struct cmd_fsck cmd = {.cli = cli, .findings = findings};
	struct fsck_result result = {0};
	int found = cli_find_store(cli, &store, err);
	const struct fsck_options options = {
		.store = store,
		.worker_path = cli->worker_path,
		.dry_run = cli_has(cli, "dry-run"),
		.bytes_only = cli_has(cli, "quick"),
		.tell = fsck_hear,
		.progress = fsck_hear_progress,
		.ctx = &cmd,
		.cancel = cli->cancel,
	};

	if (found < 0 || (found == 1 && fsck_run(&options, &result, err) < 0)) {
		fsck_hide_progress(&cmd);
		return err_ctx(err, "fsck");
	}
	fsck_print(&cmd, &result);
	return fsck_conclude(&cmd, &result, err);
}

static const struct cli_option options[] = {
	{"dry-run", NULL, "say what is wrong, and change nothing", false},
	{"quick", NULL, "do not inflate layers, nor compare trees", false},
	CLI_OPTION_JSON,
	CLI_OPTION_DATA,
	CLI_OPTION_HELP,
};

const struct cli_command cli_fsck = {
	.name = "fsck",
	.arguments = "",
	.summary = "check the store, and mend it",
	.detail =
		"Everything is hashed and compared, beside whatever runs. What is damaged is\n"
		"named and removed, with the records that need it, so that the next bake or pull\n"
		"makes it again; trees and counts are repaired. The exit code is 65 when there\n"
		"was damage.\n",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.run = run,
};
