/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/registry/standin.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>

#define STANDIN_HEAD_MAX ((size_t)65536)
#define STANDIN_LINGER_MAX ((size_t)256 << 20) /* more than any test sends */
#define STANDIN_LINGER_S 10

/* Read the head of one request, and what came with it. 0 when the client sent none. */
static size_t standin_read(int fd, char *head)
{
	size_t len = 0;

	while (len < STANDIN_HEAD_MAX - 1) {
		ssize_t n = recv(fd, head + len, STANDIN_HEAD_MAX - 1 - len, 0);

		if (n <= 0)
			return 0;
		len += (size_t)n;
		head[len] = '\0';
		if (memmem(head, len, "\r\n\r\n", 4))
			return len;
	}
	return 0;
}

static void standin_serve(struct standin *standin, int fd)
{
	auto_free char *text = calloc(1, STANDIN_HEAD_MAX);
	auto_free char *line = NULL;
	struct standin_request request = {.server = standin, .fd = fd};
	char *space;

	request.len = text ? standin_read(fd, text) : 0;
	if (request.len == 0)
		return;
	line = strndup(text, strcspn(text, "\r\n"));
	if (!line)
		abort();
	request.text = text;
	request.method = line;
	space = strchr(line, ' ');
	if (!space)
		return;
	*space = '\0';
	request.target = space + 1;
	space = strchr(space + 1, ' ');
	if (space)
		*space = '\0';
	request.number = atomic_fetch_add(&standin->requests, 1) + 1;
	standin->fn(standin->ctx, &request);
}

/* Who came before the stop is served still. */
static void *standin_run(void *ctx)
{
	struct standin *standin = ctx;
	struct pollfd fds[] = {{.fd = standin->fd, .events = POLLIN},
			       {.fd = standin->stopfd, .events = POLLIN}};

	while (poll(fds, 2, -1) >= 0 || errno == EINTR) {
		auto_close int fd = accept4(standin->fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd >= 0) {
			atomic_fetch_add(&standin->clients, 1);
			standin_serve(standin, fd);
		} else if (fds[1].revents) {
			return NULL;
		}
	}
	return NULL;
}

void standin_start(struct standin *standin, standin_fn *fn, void *ctx)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);

	*standin = (struct standin){.fn = fn, .ctx = ctx};
	standin->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	standin->stopfd = eventfd(0, EFD_CLOEXEC);
	if (standin->fd < 0 || standin->stopfd < 0 ||
	    bind(standin->fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(standin->fd, 16) < 0 ||
	    getsockname(standin->fd, (struct sockaddr *)&address, &len) < 0)
		abort();
	standin->port = ntohs(address.sin_port);
	if (pthread_create(&standin->thread, NULL, standin_run, standin) != 0)
		abort();
}

void standin_stop(struct standin *standin)
{
	if (!standin->fn)
		return;
	if (eventfd_write(standin->stopfd, 1) < 0)
		abort();
	(void)pthread_join(standin->thread, NULL);
	(void)close(standin->stopfd);
	(void)close(standin->fd);
	standin->fn = NULL;
}

void standin_say(const struct standin_request *request, const char *fmt, ...)
{
	auto_free char *text = NULL;
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (len < 0)
		abort();
	/* A client that has gone is no failure of the test. */
	(void)send(request->fd, text, (size_t)len, MSG_NOSIGNAL);
}

/*
 * Close without a reset: one would follow from what the client still sends, and
 * destroy the answer on its way. A client that does not hang up is left behind.
 */
static void standin_linger(const struct standin_request *request)
{
	const struct timeval patience = {.tv_sec = STANDIN_LINGER_S};
	auto_free char *piece = malloc(STANDIN_HEAD_MAX);
	size_t left = STANDIN_LINGER_MAX;
	ssize_t n = 1;

	if (!piece ||
	    setsockopt(request->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0)
		abort();
	(void)shutdown(request->fd, SHUT_WR);
	while (n > 0 && left > 0) {
		n = recv(request->fd, piece, left < STANDIN_HEAD_MAX ? left : STANDIN_HEAD_MAX, 0);
		left -= n > 0 ? (size_t)n : 0;
	}
}

void standin_answer(const struct standin_request *request, const char *status, const char *headers,
		    struct str body)
{
	standin_say(request,
		    "HTTP/1.1 %s\r\nConnection: close\r\n%sContent-Length: %zu\r\n\r\n" STR_FMT,
		    status, headers, body.len,
		    STR_ARG(strcmp(request->method, "HEAD") == 0 ? STR("") : body));
	standin_linger(request);
}

void standin_await_goodbye(const struct standin_request *request)
{
	char byte;

	while (recv(request->fd, &byte, 1, 0) > 0)
		;
}

bool standin_asked(const struct standin_request *request, const char *header)
{
	return strstr(request->text, header) != NULL;
}

bool standin_read_body(const struct standin_request *request, size_t size, struct buf *out,
		       struct err *err)
{
	const char *head = memmem(request->text, request->len, "\r\n\r\n", 4);
	size_t here = request->len - (size_t)(head + 4 - request->text);
	auto_free char *piece = malloc(STANDIN_HEAD_MAX);

	if (!piece)
		abort();
	here = here < size ? here : size;
	if (buf_add(out, (struct str){head + 4, here}, err) < 0)
		return false;
	while (here < size) {
		size_t most = size - here < STANDIN_HEAD_MAX ? size - here : STANDIN_HEAD_MAX;
		ssize_t n = recv(request->fd, piece, most, 0);

		if (n <= 0 || buf_add(out, (struct str){piece, (size_t)n}, err) < 0)
			return false;
		here += (size_t)n;
	}
	return true;
}
