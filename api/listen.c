/* SPDX-License-Identifier: Apache-2.0 */
#include "api/listen.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define LISTEN_BACKLOG 1024

DEFINE_AUTO(addrinfo, struct addrinfo *, freeaddrinfo);

static bool listen_is_port(struct str text)
{
	uint64_t port;

	return str_parse_number(text, &port) && port <= UINT16_MAX;
}

/* "[::1]:80" as "::1" and "80". */
static int listen_split(const char *text, char host[static LISTEN_TEXT_MAX], const char **out_port,
			struct err *err)
{
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;

	if (!colon || len >= LISTEN_TEXT_MAX || !listen_is_port(str_of(colon + 1)))
		return err_set(err, ERR_INVALID, "listen %.100s: expected HOST:PORT", text);
	if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	}
	memcpy(host, text, len);
	host[len] = '\0';
	*out_port = colon + 1;
	return 0;
}

static void listen_format(int fd, char out[static LISTEN_TEXT_MAX])
{
	struct sockaddr_storage address;
	socklen_t len = sizeof(address);
	char host[NI_MAXHOST];
	char port[NI_MAXSERV];

	out[0] = '\0';
	if (getsockname(fd, (struct sockaddr *)&address, &len) < 0 ||
	    getnameinfo((struct sockaddr *)&address, len, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		return;
	(void)snprintf(out, LISTEN_TEXT_MAX, strchr(host, ':') ? "[%.200s]:%.10s" : "%.200s:%.10s",
		       host, port);
}

static int listen_on(const struct addrinfo *where, const char *text, struct err *err)
{
	static const int on = 1;
	auto_close int fd = socket(where->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return err_os(err, errno, "make a socket");
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, where->ai_addr, where->ai_addrlen) < 0 || listen(fd, LISTEN_BACKLOG) < 0) {
		if (errno == EADDRINUSE)
			return err_set(err, ERR_CONFLICT,
				       "listen %s: another program listens there; give another "
				       "address by --listen",
				       text);
		return err_os(err, errno, "listen %s", text);
	}
	return steal_fd(&fd);
}

int listen_tcp(const char *text, char out[static LISTEN_TEXT_MAX], struct err *err)
{
	const struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
				       .ai_socktype = SOCK_STREAM};
	AUTO(addrinfo) struct addrinfo *found = NULL;
	char host[LISTEN_TEXT_MAX];
	const char *port;
	int failed;
	int fd;

	if (listen_split(text, host, &port, err) < 0)
		return -1;
	failed = getaddrinfo(*host ? host : NULL, port, &hints, &found);
	if (failed)
		return err_set(err, ERR_INVALID, "listen %.100s: %s", text, gai_strerror(failed));
	fd = listen_on(found, text, err);
	if (fd >= 0)
		listen_format(fd, out);
	return fd;
}

int listen_unix(int dirfd, const char *name, struct err *err)
{
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int n;

	/* By way of the descriptor: a path of any length has to fit into 108 bytes. */
	n = snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", dirfd,
		     name);
	if (fd < 0)
		return err_os(err, errno, "make a socket");
	if (n < 0 || (size_t)n >= sizeof(address.sun_path))
		return err_set(err, ERR_INVALID, "socket %s: the name is too long", name);
	if (unlinkat(dirfd, name, 0) < 0 && errno != ENOENT)
		return err_os(err, errno, "remove the old socket %s", name);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    fchmodat(dirfd, name, 0600, 0) < 0 || listen(fd, LISTEN_BACKLOG) < 0)
		return err_os(err, errno, "listen on the socket %s", name);
	return steal_fd(&fd);
}
