/* SPDX-License-Identifier: Apache-2.0 */
#include "api/secret_option.h"

#include "api/input.h"
#include "api/settings.h"
#define LOG_MODULE "api"
#include "layers/base/log.h"

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

int secret_option_read_config(const struct config *config, struct secrets *out, struct err *err)
{
	for (size_t i = 0; i < config->secret_count; i++) {
		const struct config_secret *secret = &config->secrets[i];
		const struct secret_source source = {.file = drop_const(secret->file),
						     .env = drop_const(secret->env)};
		auto_buf struct buf bytes = BUF_WIPED(SECRET_FILE_MAX);

		if (secret_option_fill(&source, NULL, &bytes, err) < 0) {
			log_warn("secret left out id=%s why=\"%s\"", secret->id, err->text);
			continue;
		}
		if (secrets_add(out, secret->id, &bytes, err) < 0)
			return err_ctx(err, "secret %s", secret->id);
	}
	return 0;
}
