/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_logs.c - `hearth logs`: what the steps behind an image wrote, one that failed, or a bake. */
#include "api/follow.h"
#include "api/human.h"
#include "api/lookup.h"
#include "api/outlet.h"
#include "bake/image.h"
#include "layers/failure.h"
#include "layers/step.h"

#include <string.h>
#include <unistd.h>

#define LOGS_LINE_MAX ((size_t)64 * 1024) /* a longer line is shown in pieces */
#define LOGS_COLUMNS ((size_t)200)        /* of a step's text */

struct logs {
	struct sink sink;
	struct store *store;
	FILE *out; /* owned */
	const struct cancel *cancel;
	bool terminal;   /* what a step wrote must not steer it */
	bool json;       /* a line is an object */
	size_t step;     /* whose log is printed; 0 where a bake's tells that itself */
	bool open;       /* the last line has no end yet */
	struct buf line; /* owned: that line, for a terminal or as JSON */
};

static int logs_put(const struct logs *logs, struct str bytes, struct err *err)
{
	if (fwrite(bytes.ptr, 1, bytes.len, logs->out) < bytes.len)
		return err_os(err, errno, "write standard output");
	return 0;
}

static void logs_format_line(struct logs *logs)
{
	AUTO(json) json_t *value = json_object();

	if (logs->step > 0)
		json_set_size(value, "step", logs->step);
	json_set(value, "text", json_from_str(buf_str(&logs->line)));
	buf_clear(&logs->line);
	human_json(value, logs->out);
}

/* ends: its newline came. */
static int logs_show_line(struct logs *logs, bool ends, struct err *err)
{
	auto_buf struct buf shown = BUF_INIT(4 * LOGS_LINE_MAX);

	if (logs->json) {
		if (ends || logs->line.len > 0)
			logs_format_line(logs);
		return 0;
	}
	if (human_line(buf_str(&logs->line), LOGS_LINE_MAX, &shown, err) < 0)
		return -1;
	buf_clear(&logs->line);
	if (ends && buf_add(&shown, STR("\n"), err) < 0)
		return -1;
	return logs_put(logs, buf_str(&shown), err);
}

static int logs_show(struct logs *logs, struct str bytes, struct err *err)
{
	for (size_t i = 0; i < bytes.len; i++) {
		bool ends = bytes.ptr[i] == '\n';

		if ((ends || logs->line.len == LOGS_LINE_MAX) &&
		    logs_show_line(logs, ends, err) < 0)
			return -1;
		if (!ends && buf_add(&logs->line, (struct str){bytes.ptr + i, 1}, err) < 0)
			return -1;
	}
	return 0;
}

static int logs_write(struct sink *sink, struct str bytes, struct err *err)
{
	struct logs *logs = container_of(sink, struct logs, sink);

	if (cancel_check(logs->cancel, err) < 0)
		return -1;
	if (bytes.len == 0)
		return 0;
	logs->open = bytes.ptr[bytes.len - 1] != '\n';
	return logs->terminal || logs->json ? logs_show(logs, bytes, err)
					    : logs_put(logs, bytes, err);
}

static int logs_copy(struct logs *logs, const struct step_log *log, struct err *err)
{
	if (step_log_copy(logs->store, log, &logs->sink, err) < 0)
		return -1;
	return logs_show_line(logs, false, err);
}

/* One step's log; a step that changes only the configuration has none. */
static int logs_step(struct logs *logs, size_t step, const struct digest *key, struct err *err)
{
	static const struct digest none;
	auto_step_record struct step_record record = STEP_RECORD_INIT;
	AUTO(meta) struct meta *meta = NULL;
	int found;

	logs->step = step;
	if (digest_equal(key, &none))
		return 0;
	if (meta_begin(logs->store, META_READ, &meta, err) < 0)
		return -1;
	found = step_find(meta, key, true, &record, err);
	meta_abort(steal_ptr(&meta)); /* it must not span a wait for our reader */
	if (found == 0)
		return err_set(err, ERR_NOT_FOUND, "the step's log is no longer here");
	return found < 0 ? -1 : logs_copy(logs, &record.log, err);
}

/* "[2/5] RUN make", from the end of the image's history. */
static int logs_title(const struct logs *logs, const struct lookup *image, size_t step, size_t of,
		      struct err *err)
{
	auto_buf struct buf title = BUF_INIT(4 * LOGS_COLUMNS + 64);
	const json_t *history = json_object_get(image->config.document, "history");
	size_t at = json_array_size(history) - of + step - 1;
	const json_t *text = json_object_get(json_array_get(history, at), "created_by");

	if (buf_addf(&title, err, "[%zu/%zu] ", step, of) < 0 ||
	    (json_is_string(text) && human_line(json_str(text), LOGS_COLUMNS, &title, err) < 0) ||
	    buf_add(&title, STR("\n"), err) < 0)
		return -1;
	return logs_put(logs, buf_str(&title), err);
}

static int logs_all(struct logs *logs, const struct lookup *image, const struct digest *keys,
		    size_t count, struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		if ((!logs->json && logs_title(logs, image, i + 1, count, err) < 0) ||
		    logs_step(logs, i + 1, &keys[i], err) < 0)
			return -1;
		if (logs->open && !logs->json && logs_put(logs, STR("\n"), err) < 0)
			return -1;
		logs->open = false;
	}
	return 0;
}

static int logs_numbered(struct logs *logs, const char *text, const struct digest *keys,
			 size_t count, struct err *err)
{
	size_t step;

	if (cli_read_step("step", text, &step, err) < 0)
		return -1;
	if (step > count)
		return err_set(err, ERR_NOT_FOUND, "step %s: the image has %zu steps", text, count);
	return logs_step(logs, step, &keys[step - 1], err);
}

static int logs_image(struct logs *logs, const struct cli *cli, const struct lookup *image,
		      struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	auto_free struct digest *keys = NULL;
	size_t count = 0;
	int found;

	if (meta_begin(logs->store, META_READ, &meta, err) < 0)
		return -1;
	found = image_find_steps(meta, &image->digest, &keys, &count, err);
	meta_abort(steal_ptr(&meta));
	if (found == 0)
		return err_set(err, ERR_NOT_FOUND, "image %s was not baked here: it has no logs",
			       cli->args[0]);
	if (found < 0)
		return -1;
	if (cli->arg_count > 1)
		return logs_numbered(logs, cli->args[1], keys, count, err);
	return logs_all(logs, image, keys, count, err);
}

/* 1 a step that failed was meant, and its log was printed; 0 none was; -1. */
static int logs_failure(struct logs *logs, const struct cli *cli, struct err *err)
{
	auto_failure struct failure failure = FAILURE_INIT;
	AUTO(meta) struct meta *meta = NULL;
	struct str hex;
	int found;

	if (cli->arg_count > 1 || !lookup_hex(str_of(cli->args[0]), &hex))
		return 0;
	if (meta_begin(logs->store, META_READ, &meta, err) < 0)
		return -1;
	found = failure_find(meta, hex, &failure, err);
	meta_abort(steal_ptr(&meta));
	if (found != 1)
		return found;
	return logs_copy(logs, &failure.log, err) < 0 ? -1 : 1;
}

/* What is no image here may be an agent, whose image is not baked yet or has failed. */
static int logs_refuse(const struct cli *cli, struct err *err)
{
	const struct err why = *err;

	if (strpbrk(cli->args[0], ":/@"))
		return -1;
	return err_set(err, why.kind, "%s; an agent's newest bake is shown by hearth logs -f %s",
		       why.text, cli->args[0]);
}

/* By what the user named: an image, or else a step that failed. */
static int logs_print(struct logs *logs, const struct cli *cli, struct err *err)
{
	AUTO(store) struct store *store = NULL;
	auto_lookup struct lookup image = LOOKUP_INIT;
	struct err other = {0};
	int found;

	if (lookup_named(cli, &store, &image, err) == 0) {
		logs->store = store;
		return logs_image(logs, cli, &image, err);
	}
	if (err->kind != ERR_NOT_FOUND || !store)
		return -1;
	logs->store = store;
	found = logs_failure(logs, cli, &other);
	if (found == 0)
		return logs_refuse(cli, err);
	if (found < 0)
		*err = other;
	return found < 0 ? -1 : 0;
}

static int logs_bake(struct logs *logs, const struct cli *cli, struct err *err)
{
	size_t step = 0;

	if (cli->arg_count > 1 && cli_read_step("step", cli->args[1], &step, err) < 0)
		return -1;
	if (follow_write(cli, cli->args[0], step, &logs->sink, err) < 0)
		return err_ctx(err, "logs %s", cli->args[0]);
	return logs_show_line(logs, false, err);
}

static int run(struct cli *cli, struct err *err)
{
	bool of_bake = cli_has(cli, "follow") || follow_is_bake(cli->args[0]);
	struct logs logs = {
		.sink = {logs_write},
		.out = outlet_open(STDOUT_FILENO, cli->cancel),
		.cancel = cli->cancel,
		.terminal = isatty(STDOUT_FILENO),
		.json = cli_has(cli, "json"),
		.line = BUF_INIT(LOGS_LINE_MAX),
	};
	int result;

	if (!logs.out)
		return err_os(err, errno, "open standard output");
	/* Who follows wants it at once. */
	(void)setvbuf(logs.out, NULL, of_bake ? _IONBF : _IOFBF, LOGS_LINE_MAX);
	result = of_bake ? logs_bake(&logs, cli, err) : logs_print(&logs, cli, err);
	if (fclose(logs.out) != 0 && result == 0)
		result = err_os(err, errno, "write standard output");
	buf_done(&logs.line);
	return result;
}

static const struct cli_option options[] = {
	{"follow", NULL, "-f: of a bake of the daemon's, until it has ended", false},
	LOOKUP_OPTION_PLATFORM,
	CLI_OPTION_JSON,
	CLI_OPTION_DATA,
	CLI_OPTION_HELP,
};

const struct cli_command cli_logs = {
	.name = "logs",
	.arguments = "IMAGE|BAKE|AGENT [STEP]",
	.summary = "print what the steps of an image wrote, or what a bake writes",
	.detail =
		"IMAGE is a tag, a digest, or six hex digits or more of its beginning, of an\n"
		"image that was baked here; or the key of a step that failed, as the failed bake\n"
		"says it. STEP is a number from 1: the log of that step alone is printed, byte\n"
		"for byte unless on a terminal. BAKE is the id of a bake of the daemon's; with -f\n"
		"an agent's slug or id means its newest one. With --json a line is an object.\n",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.args_min = 1,
	.args_max = 2,
	.run = run,
};
