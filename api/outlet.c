/* SPDX-License-Identifier: Apache-2.0 */
#include "api/outlet.h"

#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define OUTLET_FILE_PIECE ((size_t)1024 * 1024) /* a file is never waited for */

struct outlet {
	int fd;
	size_t piece; /* as much as a write takes without blocking, once poll() says so */
	const struct cancel *cancel;
};

/* Whether a piece can be written without blocking, or writing fails at once. */
static bool outlet_wait(const struct outlet *outlet)
{
	struct pollfd fds[] = {{.fd = outlet->fd, .events = POLLOUT},
			       {.fd = cancel_fd(outlet->cancel), .events = POLLIN}};

	do {
		bool last = cancel_is_raised(outlet->cancel);

		if (poll(fds, 2, last ? 0 : -1) < 0 && errno != EINTR)
			return false;
		if (fds[0].revents)
			return true;
		if (last)
			return false;
	} while (true);
}

static ssize_t outlet_write(void *cookie, const char *bytes, size_t len)
{
	const struct outlet *outlet = cookie;
	size_t done = 0;

	while (done < len && outlet_wait(outlet)) {
		size_t piece = len - done < outlet->piece ? len - done : outlet->piece;
		ssize_t n = write(outlet->fd, bytes + done, piece);

		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return 0; /* which stdio takes for a failure */
		done += n < 0 ? 0 : (size_t)n;
	}
	return (ssize_t)len;
}

static int outlet_close(void *cookie)
{
	free(cookie);
	return 0;
}

FILE *outlet_open(int fd, const struct cancel *cancel)
{
	static const cookie_io_functions_t functions = {.write = outlet_write,
							.close = outlet_close};
	struct outlet *outlet = malloc(sizeof(*outlet));
	struct stat st;
	FILE *stream;

	if (!outlet)
		return NULL;
	*outlet = (struct outlet){fd, PIPE_BUF, cancel};
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		outlet->piece = OUTLET_FILE_PIECE;
	stream = fopencookie(outlet, "w", functions);
	if (!stream) {
		free(outlet);
		return NULL;
	}
	(void)setvbuf(stream, NULL, _IOLBF, BUFSIZ);
	return stream;
}
