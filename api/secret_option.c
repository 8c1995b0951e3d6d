/* SPDX-License-Identifier: Apache-2.0 */
#include "api/secret_option.h"

#include "api/input.h"
#include "api/settings.h"

static bool secret_option_is_variable(const char *name)
{
	return settings_named(name) != NULL;
}

static int secret_option_fill(const struct secret_source *source, const struct cancel *cancel,
			      struct buf *out, struct err *err)
{
	const char *value;

	if (source->file)
		return input_read("secret", source->file, cancel, out, err);
	value = settings_named(source->env);
	if (!value)
		return err_set(err, ERR_NOT_FOUND, "the variable %s is not set", source->env);
	return buf_add(out, str_of(value), err);
}

static int secret_option_add(const char *text, const struct cancel *cancel, struct secrets *out,
			     struct err *err)
{
	auto_secret_source struct secret_source source = {0};
	auto_buf struct buf bytes = BUF_WIPED(SECRET_FILE_MAX);

	if (secret_source_parse(str_of(text), secret_option_is_variable, &source, err) < 0 ||
	    secret_option_fill(&source, cancel, &bytes, err) < 0)
		return -1;
	return secrets_add(out, source.id, &bytes, err);
}

int secret_option_read(const struct cli *cli, struct secrets *out, struct err *err)
{
	struct cli_value given = cli_list(cli, "secret");

	for (size_t i = 0; i < given.count; i++) {
		if (secret_option_add(given.at[i], cli->cancel, out, err) < 0)
			return err_ctx(err, "--secret %s", given.at[i]);
	}
	return 0;
}
