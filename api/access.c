/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access.h"

#include "api/settings.h"
#include "layers/base/fd.h"

#include <fcntl.h>

int access_for(struct str text, struct credentials *out, struct err *err)
{
	auto_free char *path = settings_docker_config();
	auto_close int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY) : -1;
	auto_buf struct buf content = BUF_WIPED(CREDENTIALS_FILE_MAX);
	struct reference reference;

	*out = (struct credentials){0};
	if (fd < 0)
		return 0;
	if (reference_parse(text, &reference, err) < 0)
		return err_ctx(err, "base");
	if (reference.kind != REFERENCE_REGISTRY)
		return 0;
	if (fd_read_all(fd, &content, err) < 0 ||
	    credentials_find(buf_str(&content), reference.host, out, err) < 0)
		return err_ctx(err, "%s", path);
	return 0;
}

int access_layer_limit(const struct cli *cli, uint64_t *out, struct err *err)
{
	const char *text = cli_text(cli, "max-layer-bytes");
	struct str rest = str_of(text ? text : "");

	*out = 0;
	if (!text)
		return 0;
	if (!str_take_number(&rest, out) || rest.len > 0 || *out == 0 || *out > INT64_MAX)
		return err_set(err, ERR_INVALID, "--max-layer-bytes %s: expected a number of bytes",
			       text);
	return 0;
}
