/* SPDX-License-Identifier: Apache-2.0 */
#include "api/spec_file.h"

#include "api/context_arg.h"
#include "api/human.h"
#include "api/input.h"
#include "api/settings.h"

#include <string.h>

/* It quotes the spec, and may go to a terminal: so without control characters. */
static void spec_file_warn(const char *path, const char *warning)
{
	auto_free char *name = human_text(str_of(path));
	auto_free char *text = human_text(str_of(warning));

	(void)fprintf(stderr, "hearth: warning: %s: %s\n", name, text);
}

/* --source-date-epoch; or the variable, for a spec that is to be reproducible. */
static int spec_file_read_epoch(const struct cli *cli, struct spec *out, struct err *err)
{
	const char *given = cli_text(cli, "source-date-epoch");
	const char *name = given ? "--source-date-epoch" : "SOURCE_DATE_EPOCH";
	uint64_t seconds;

	if (!given && out->reproducible)
		given = settings_source_date_epoch();
	if (!given)
		return 0;
	if (!str_parse_number(str_of(given), &seconds) || seconds > SPEC_EPOCH_MAX)
		return err_set(err, ERR_INVALID,
			       "%s: expected seconds since 1970, at most %lld, found %s", name,
			       (long long)SPEC_EPOCH_MAX, given);
	out->reproducible = true;
	out->source_date_epoch = (int64_t)seconds;
	return 0;
}

int spec_file_read(const struct cli *cli, struct spec *out, struct err *err)
{
	const char *path = cli->args[0];
	const char *platform = cli_text(cli, "platform");
	const char *base = cli_text(cli, "base");
	auto_buf struct buf text = BUF_INIT(SPEC_MAX);

	if (input_read("spec", path, cli->cancel, &text, err) < 0)
		return -1;
	if (spec_parse(buf_str(&text), out, err) < 0)
		return err_ctx(err, "spec %s", path);
	if (base)
		out->base = str_of(base);
	if (platform && platform_parse(str_of(platform), &out->platform, err) < 0)
		return err_ctx(err, "--platform");
	if (spec_file_read_epoch(cli, out, err) < 0)
		return -1;
	for (size_t i = 0; i < json_array_size(out->warnings); i++)
		spec_file_warn(path, json_string_value(json_array_get(out->warnings, i)));
	return 0;
}

int spec_file_open_context(const struct cli *cli, const struct spec *spec, struct store *store,
			   int *out, struct err *err)
{
	const char *given = cli_text(cli, "context");
	auto_free char *beside = NULL;

	if (!given && spec->context.len == 0)
		return 0;
	if (given && strcmp(given, "-") == 0 && strcmp(cli->args[0], "-") == 0)
		return err_set(err, ERR_INVALID,
			       "the spec and its context cannot both be standard input");
	if (!given) {
		beside = context_arg_beside(cli->args[0], spec->context);
		given = beside;
	}
	if (context_arg_open(cli, store, given, out, err) < 0)
		return err_ctx(err, "context %s", given);
	return 0;
}
