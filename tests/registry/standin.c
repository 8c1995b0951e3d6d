/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/registry/standin.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define STANDIN_HEAD_MAX 65536

/* Read the head of one request. False when the client sent none. */
static bool standin_read(int fd, char *head)
{
	size_t len = 0;

	while (len < STANDIN_HEAD_MAX - 1) {
		ssize_t n = recv(fd, head + len, STANDIN_HEAD_MAX - 1 - len, 0);

		if (n <= 0)
			return false;
		len += (size_t)n;
		head[len] = '\0';
		if (strstr(head, "\r\n\r\n"))
			return true;
	}
	return false;
}

static void standin_serve(struct standin *standin, int fd)
{
	auto_free char *text = calloc(1, STANDIN_HEAD_MAX);
	auto_free char *line = NULL;
	struct standin_request request = {.server = standin, .fd = fd};
	char *space;

	if (!text || !standin_read(fd, text))
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

static void *standin_run(void *ctx)
{
	struct standin *standin = ctx;

	for (;;) {
		auto_close int fd = accept4(standin->fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0)
			return NULL;
		standin_serve(standin, fd);
	}
}

void standin_start(struct standin *standin, standin_fn *fn, void *ctx)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);

	*standin = (struct standin){.fn = fn, .ctx = ctx};
	standin->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (standin->fd < 0 ||
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
	(void)shutdown(standin->fd, SHUT_RDWR); /* accept4() returns */
	(void)pthread_join(standin->thread, NULL);
	(void)close(standin->fd);
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

void standin_answer(const struct standin_request *request, const char *status, const char *headers,
		    struct str body)
{
	standin_say(request,
		    "HTTP/1.1 %s\r\nConnection: close\r\n%sContent-Length: %zu\r\n\r\n" STR_FMT,
		    status, headers, body.len,
		    STR_ARG(strcmp(request->method, "HEAD") == 0 ? STR("") : body));
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
