/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access.h"

#include "api/settings.h"
#include "layers/base/fd.h"
#include "registry/helper.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* One file, if it is there. 1 and something is known, 0, -1. */
static int access_look(const char *path, const struct reference *reference, struct credentials *out,
		       struct err *err)
{
	auto_close int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY) : -1;
	auto_buf struct buf content = BUF_WIPED(CREDENTIALS_FILE_MAX);
	int found;

	if (fd < 0)
		return 0;
	if (fd_read_all(fd, &content, err) < 0)
		return err_ctx(err, "%s", path);
	found = credentials_find(buf_str(&content), reference->host, reference->path, out, err);
	return found < 0 ? err_ctx(err, "%s", path) : found;
}

/* Docker's file, and podman's where that says nothing for sure. */
static int access_find(const struct reference *reference, struct credentials *out, struct err *err)
{
	auto_free char *docker = settings_docker_config();
	auto_free char *containers = settings_auth_file();
	auto_credentials struct credentials other = {0};
	int found = access_look(docker, reference, out, err);
	int more;

	if (found < 0 || (found > 0 && !out->guessed))
		return found;
	more = access_look(containers, reference, &other, err);
	if (more <= 0)
		return more < 0 ? -1 : found;
	*out = other;
	other = (struct credentials){0};
	return 1;
}

/* A guessed helper may be missing, or know nothing: then the host is anonymous. */
static int access_ask(const struct helper_spec *helper, struct credentials *out, struct err *err)
{
	bool guessed = out->guessed;

	if (helper_ask(helper, out, err) == 0)
		return 0;
	if (!guessed || (err->kind != ERR_UNAVAILABLE && err->kind != ERR_UNAUTHORIZED))
		return -1;
	*out = (struct credentials){0};
	return 0;
}

int access_for(struct str text, const struct cancel *cancel, struct credentials *out,
	       struct err *err)
{
	struct helper_spec helper = {.search = settings_search(), .cancel = cancel};
	struct reference reference;
	int found;

	*out = (struct credentials){0};
	if (reference_parse(text, &reference, err) < 0)
		return err_ctx(err, "base");
	if (reference.kind != REFERENCE_REGISTRY)
		return 0;
	found = access_find(&reference, out, err);
	if (found <= 0 || !out->helper[0])
		return found < 0 ? -1 : 0;
	helper.host = reference.host;
	return access_ask(&helper, out, err);
}

int access_proxies(struct proxies *out, struct err *err)
{
	auto_free char *path = settings_docker_config();
	auto_close int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY) : -1;
	auto_buf struct buf content = BUF_WIPED(CREDENTIALS_FILE_MAX);

	*out = (struct proxies){.count = 0};
	if (fd < 0)
		return 0;
	if (fd_read_all(fd, &content, err) < 0 || proxies_read(buf_str(&content), out, err) < 0)
		return err_ctx(err, "%s", path);
	return 0;
}

/* One line, without its end, as docker login takes it. */
static int access_read_password(struct secret *out, struct err *err)
{
	auto_buf struct buf text = BUF_WIPED(SECRET_MAX);
	struct str line;

	if (fd_read_all(STDIN_FILENO, &text, err) < 0)
		return err_ctx(err, "--password-stdin");
	line = buf_str(&text);
	while (line.len > 0 && strchr("\r\n", line.ptr[line.len - 1]))
		line.len--;
	if (line.len == 0)
		return err_set(err, ERR_INVALID, "--password-stdin: standard input is empty");
	return secret_put(out, line, err);
}

int access_login(const struct cli *cli, struct str text, struct credentials *out, struct err *err)
{
	const char *user = cli_text(cli, "username");

	if (!user && !cli_has(cli, "password-stdin"))
		return access_for(text, cli->cancel, out, err);
	if (!user || !cli_has(cli, "password-stdin"))
		return err_set(err, ERR_INVALID, "--username and --password-stdin go together");
	if (strlen(user) >= sizeof(out->user))
		return err_set(err, ERR_INVALID, "--username: longer than %zu bytes",
			       sizeof(out->user) - 1);
	*out = (struct credentials){0};
	(void)snprintf(out->user, sizeof(out->user), "%s", user);
	return access_read_password(&out->password, err);
}

int access_layer_limit(const struct cli *cli, uint64_t *out, struct err *err)
{
	uint64_t bytes = 0;

	if (cli_read_size(cli, "max-layer-bytes", &bytes, err) < 0)
		return -1;
	if (cli_has(cli, "max-layer-bytes") && (bytes == 0 || bytes > INT64_MAX))
		return err_set(err, ERR_INVALID, "--max-layer-bytes %s: expected 1 to %lld bytes",
			       cli_text(cli, "max-layer-bytes"), (long long)INT64_MAX);
	*out = bytes;
	return 0;
}
