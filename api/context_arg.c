/* SPDX-License-Identifier: Apache-2.0 */
#include "api/context_arg.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool context_arg_is_digest(const char *text)
{
	return str_starts(str_of(text), STR("sha256:"));
}

/* Why the user's file or directory does not open. */
static int context_arg_refuse(const char *text, int os, struct err *err)
{
	if (os == ENOENT || os == ENOTDIR || os == EACCES || os == ELOOP || os == ENAMETOOLONG)
		return err_set(err, ERR_NOT_FOUND, "%s", strerror(os));
	return err_os(err, os, "open %s", text);
}

static int context_arg_open_stdin(int *out_fd, struct err *err)
{
	int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);

	if (fd < 0 || isatty(fd)) {
		auto_close_release(&fd);
		return err_set(err, ERR_INVALID, "standard input is no tar; pipe one in");
	}
	*out_fd = fd;
	return 0;
}

int context_arg_open_source(const char *text, int *out_fd, bool *out_is_dir, struct err *err)
{
	auto_close int fd = -1;
	struct stat st;

	*out_is_dir = false;
	if (strcmp(text, "-") == 0)
		return context_arg_open_stdin(out_fd, err);
	fd = open(text, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0)
		return context_arg_refuse(text, errno, err);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode))
		return err_set(err, ERR_INVALID, "it is neither a directory nor a tar");
	*out_is_dir = S_ISDIR(st.st_mode);
	*out_fd = steal_fd(&fd);
	return 0;
}

static int context_arg_open_stored(const struct cli *cli, struct store *store,
				   const struct digest *digest, int *out_fd, struct err *err)
{
	const struct asker asker = {
		.store = store,
		.worker_path = cli->worker_path,
		.cancel = cli->cancel,
	};

	return tarball_open(&asker, digest, out_fd, err);
}

static int context_arg_open_digest(const struct cli *cli, struct store *store, struct str text,
				   int *out_fd, struct err *err)
{
	struct digest digest;

	if (digest_parse(text, &digest, err) < 0)
		return -1;
	return context_arg_open_stored(cli, store, &digest, out_fd, err);
}

int context_arg_open(const struct cli *cli, struct store *store, const char *text, int *out_fd,
		     struct err *err)
{
	auto_close int fd = -1;
	struct digest digest;
	bool is_dir;

	if (context_arg_is_digest(text))
		return context_arg_open_digest(cli, store, str_of(text), out_fd, err);
	if (context_arg_open_source(text, &fd, &is_dir, err) < 0)
		return -1;
	if (is_dir) {
		*out_fd = steal_fd(&fd);
		return 0;
	}
	if (tarball_put(store, fd, cli->cancel, &digest, err) < 0)
		return -1;
	return context_arg_open_stored(cli, store, &digest, out_fd, err);
}

int context_arg_put(const struct cli *cli, struct store *store, const char *text,
		    struct digest *out, struct err *err)
{
	auto_close int fd = -1;
	bool is_dir;

	if (context_arg_open_source(text, &fd, &is_dir, err) < 0)
		return -1;
	return is_dir ? tarball_pack(store, fd, cli->cancel, out, err)
		      : tarball_put(store, fd, cli->cancel, out, err);
}

char *context_arg_beside(const char *spec_path, struct str context)
{
	const char *slash = strrchr(spec_path, '/');
	int dir_len = slash ? (int)(slash - spec_path) + 1 : 0;
	bool whole = str_starts(context, STR("/")) || context_arg_is_digest(context.ptr);
	char *text;

	if (asprintf(&text, "%.*s" STR_FMT, whole ? 0 : dir_len, spec_path, STR_ARG(context)) < 0)
		abort();
	return text;
}
