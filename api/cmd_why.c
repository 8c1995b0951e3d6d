/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_why.c - `hearth why`: what makes a step run, in the words of its spec. */
#include "bake/why.h"

#include "api/cli.h"
#include "api/human.h"
#include "api/secret_option.h"
#include "api/spec_file.h"
#include "layers/base/clock.h"
#include "layers/digest_json.h"

#include <fcntl.h>
#include <string.h>

#define WHY_COLUMNS ((size_t)200)       /* of an instruction or a value */
#define WHY_DIGEST_COLUMNS ((size_t)19) /* "sha256:" and 12 digits tell digests apart */

static const char *const why_statuses[] = {
	[WHY_CACHED] = "cached",
	[WHY_NOTHING] = "nothing",
	[WHY_DIFFERS] = "differs",
	[WHY_NEW] = "new",
};

static json_t *why_json(const struct why *why, size_t asked)
{
	json_t *value = json_object();
	char at[CLOCK_TEXT_MAX];

	json_set_size(value, "asked", asked);
	json_set_size(value, "step", why->step);
	json_set_text(value, "text", why->text);
	json_set_text(value, "status", why_statuses[why->status]);
	if (why->status == WHY_NOTHING)
		return value;
	digest_json_set(value, "key", &why->key);
	if (why->status == WHY_NEW)
		return value;
	json_set_text(value, "createdAt", clock_format(why->at_ms, at));
	if (why->status == WHY_CACHED) {
		json_set_bool(value, "cutOff", why->cut_off);
		return value;
	}
	digest_json_set(value, "nearest", &why->nearest);
	(void)json_object_set(value, "differences", why->differences);
	return value;
}

/* A value as a line shows it: digests short, texts quoted, what is absent in words. */
static int why_add_value(const json_t *value, struct buf *out, struct err *err)
{
	char *text;
	int result;

	if (!value || json_is_null(value))
		return buf_add(out, STR("absent"), err);
	if (json_is_string(value) && str_starts(json_str(value), STR("sha256:")))
		return human_line(json_str(value), WHY_DIGEST_COLUMNS, out, err);
	text = json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
	if (!text)
		abort();
	result = human_line(str_of(text), WHY_COLUMNS, out, err);
	free(text);
	return result;
}

/* "parent: was made by RUN a, is made by RUN b", where it is known. */
static int why_add_sides(const json_t *difference, struct buf *out, struct err *err)
{
	const json_t *was_step = json_object_get(difference, "wasStep");
	const json_t *is_step = json_object_get(difference, "isStep");
	bool same = was_step && json_equal(was_step, is_step);
	bool steps = (was_step || is_step) && !same;
	const json_t *was = steps ? was_step : json_object_get(difference, "was");
	const json_t *is = steps ? is_step : json_object_get(difference, "is");

	if (same && (buf_add(out, STR(" (made by "), err) < 0 ||
		     why_add_value(is_step, out, err) < 0 || buf_add(out, STR(")"), err) < 0))
		return -1;
	if (buf_add(out, STR(": was "), err) < 0)
		return -1;
	if (steps && !was ? buf_add(out, STR("the base"), err) < 0
			  : why_add_value(was, out, err) < 0)
		return -1;
	if (buf_add(out, STR(", is "), err) < 0)
		return -1;
	return steps && !is ? buf_add(out, STR("the base"), err) : why_add_value(is, out, err);
}

static int why_print_difference(const char *lead, const json_t *difference, struct err *err)
{
	auto_buf struct buf line = BUF_INIT(64 * WHY_COLUMNS);
	const json_t *name = json_object_get(difference, "name");

	if (buf_addf(&line, err, "%s" STR_FMT "%s", lead,
		     STR_ARG(json_str(json_object_get(difference, "what"))), name ? " " : "") < 0 ||
	    (name && human_line(json_str(name), WHY_COLUMNS, &line, err) < 0) ||
	    why_add_sides(difference, &line, err) < 0)
		return -1;
	(void)printf(STR_FMT "\n", STR_ARG(buf_str(&line)));
	return 0;
}

static int why_print_differences(const struct why *why, struct err *err)
{
	for (size_t i = 0; i < json_array_size(why->differences); i++) {
		if (why_print_difference(i == 0 ? "" : "also ", json_array_get(why->differences, i),
					 err) < 0)
			return -1;
	}
	return 0;
}

static int why_print(const struct why *why, size_t asked, struct err *err)
{
	auto_buf struct buf title = BUF_INIT(4 * WHY_COLUMNS);
	char age[HUMAN_TEXT_MAX];

	if (human_line(str_of(why->text), WHY_COLUMNS, &title, err) < 0)
		return -1;
	if (why->step != asked)
		(void)printf("step %zu would run, since one above it does\n", asked);
	(void)printf("step %zu (" STR_FMT ") ", why->step, STR_ARG(buf_str(&title)));
	human_age(clock_now_ms() - why->at_ms, age);
	switch (why->status) {
	case WHY_CACHED:
		(void)printf("is cached: it was made %s%s\n", age,
			     why->cut_off ? ", and an earlier equal layer stands in for its own"
					  : "");
		return 0;
	case WHY_NOTHING:
		(void)printf("makes no layer: there is nothing to run\n");
		return 0;
	case WHY_NEW:
		(void)printf("would run: no step like it has run here\n");
		return 0;
	case WHY_DIFFERS:
		break;
	}
	(void)printf("would run; the nearest step was made %s and differs:\n", age);
	return why_print_differences(why, err);
}

static int run(struct cli *cli, struct err *err)
{
	AUTO(store) struct store *store = NULL;
	auto_spec struct spec spec = {0};
	auto_why struct why why = {0};
	auto_secrets struct secrets secrets = {0};
	auto_close int contextfd = -1;
	size_t step = 0;
	int found;

	if (cli_read_step("step", cli->args[1], &step, err) < 0 ||
	    secret_option_read(cli, &secrets, err) < 0 || spec_file_read(cli, &spec, err) < 0)
		return -1;
	found = cli_find_store(cli, &store, err);
	if (found == 0)
		return err_set(err, ERR_NOT_FOUND, "nothing was baked in %s: every step would run",
			       cli->data_path);
	if (found < 0 || spec_file_open_context(cli, &spec, store, &contextfd, err) < 0 ||
	    why_step(&spec,
		     &(struct bake_options){
			     .store = store,
			     .worker_path = cli->worker_path,
			     .agent_path = cli->agent_path,
			     .runtime = cli->config.runtime,
			     .contextfd = contextfd,
			     .secrets = &secrets,
			     .cancel = cli->cancel,
		     },
		     step, &why, err) < 0)
		return -1;
	if (!cli_has(cli, "json"))
		return why_print(&why, step, err);
	{
		AUTO(json) json_t *value = why_json(&why, step);

		human_json(value, stdout);
	}
	return 0;
}

static const struct cli_option options[] = {
	SPEC_FILE_OPTIONS, SECRET_OPTION, CLI_OPTION_JSON, CLI_OPTION_DATA, CLI_OPTION_HELP,
};

const struct cli_command cli_why = {
	.name = "why",
	.arguments = "SPEC STEP",
	.summary = "say what makes a step run",
	.detail =
		"STEP is a number from 1. Its key is compared with that of the nearest step that\n"
		"ran, and what differs is printed, the first cause first: base, parent,\n"
		"instruction, environment, files. Nothing is asked, pulled or run. Where a step\n"
		"above it would run already, that one is explained.\n",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.args_min = 2,
	.args_max = 2,
	.run = run,
};
