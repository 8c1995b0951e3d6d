/* SPDX-License-Identifier: Apache-2.0 */
#include "api/input.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>

static int input_not_open(const char *what, const char *path, struct err *err)
{
	if (errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == ELOOP ||
	    errno == ENAMETOOLONG)
		return err_set(err, ERR_NOT_FOUND, "%s %s: %s", what, path, strerror(errno));
	return err_os(err, errno, "%s %s", what, path);
}

/*
 * Open a fifo without waiting for a writer, who may never come; reading waits,
 * and can be cancelled.
 */
static int input_open(const char *what, const char *path, struct err *err)
{
	auto_close int fd = strcmp(path, "-") == 0
				    ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
				    : open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return input_not_open(what, path, err);
	if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
		return err_set(err, ERR_INVALID, "%s %s is a directory; name the file in it", what,
			       path);
	return steal_fd(&fd);
}

/* 1 and a piece, 0 at the end, -1. */
static int input_read_piece(int fd, const struct cancel *cancel, struct buf *out, struct err *err)
{
	struct pollfd fds[] = {{.fd = fd, .events = POLLIN},
			       {.fd = cancel_fd(cancel), .events = POLLIN}};
	char piece[64 * 1024];
	ssize_t n = -1;
	int result;

	while (n < 0) {
		(void)poll(fds, 2, -1);
		if (cancel_check(cancel, err) < 0)
			return -1;
		n = read(fd, piece, sizeof(piece));
		if (n < 0 && errno == EBADF) /* process.h */
			return err_set(err, ERR_NOT_FOUND, "there is no standard input");
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return err_os(err, errno, "read");
	}
	result = buf_add(out, (struct str){piece, (size_t)n}, err);
	if (out->wiped)
		explicit_bzero(piece, (size_t)n);
	return result < 0 ? -1 : n > 0;
}

int input_read(const char *what, const char *path, const struct cancel *cancel, struct buf *out,
	       struct err *err)
{
	auto_close int fd = input_open(what, path, err);
	int more = 1;

	if (fd < 0)
		return -1;
	while (more > 0)
		more = input_read_piece(fd, cancel, out, err);
	return more < 0 ? err_ctx(err, "%s %s", what, path) : 0;
}
