/* SPDX-License-Identifier: Apache-2.0 */
#include "api/prompt.h"

#include <poll.h>
#include <stdio.h>
#include <termios.h>
#include <unistd.h>

bool prompt_is_possible(void)
{
	return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

static int prompt_read(const struct cancel *cancel, struct buf *line, struct err *err)
{
	struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
			       {.fd = cancel_fd(cancel), .events = POLLIN}};
	char c = '\0';

	while (c != '\n') {
		ssize_t n;

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return err_os(err, errno, "wait for the terminal");
		if (cancel_check(cancel, err) < 0)
			return -1;
		n = read(STDIN_FILENO, &c, 1);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return err_os(err, errno, "read the terminal");
		if (n == 0)
			break;
		if (n == 1 && c != '\n' && buf_add(line, (struct str){&c, 1}, err) < 0)
			return -1;
	}
	return line->len > 0 ? 0 : err_set(err, ERR_INVALID, "nothing was entered");
}

int prompt_line(const char *question, bool hidden, const struct cancel *cancel, struct secret *out,
		struct err *err)
{
	auto_buf struct buf line = BUF_WIPED(SECRET_MAX);
	struct termios before;
	struct termios quiet;
	bool set = hidden && tcgetattr(STDIN_FILENO, &before) == 0;
	int result;

	(void)fprintf(stderr, "%s: ", question);
	if (set) {
		quiet = before;
		quiet.c_lflag &= ~(tcflag_t)ECHO;
		(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
	}
	result = prompt_read(cancel, &line, err);
	if (set) {
		(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
		(void)fputc('\n', stderr);
	}
	return result < 0 ? err_ctx(err, "%s", question) : secret_put(out, buf_str(&line), err);
}
