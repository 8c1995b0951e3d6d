/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sandbox/world.h"

#include "layers/base/fd.h"
#include "sandbox/lo_priv.h"
#include "sandbox/resolver_priv.h"
#include "tests/check.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define WORLD_PATIENCE_MS 20000 /* a test that waits longer has failed */
#define WORLD_ADDRESS "10.99.0.1"

static const char world_hosts[] = "127.0.0.1 localhost trap.test\n"
				  "127.0.0.1 half.test\n"
				  "169.254.169.254 metadata.test\n"
				  "0.0.0.0 zero.test\n"
				  "198.18.0.9 synthetic.test\n"
				  "::ffff:127.0.0.1 mapped.test\n"
				  "10.99.0.1 private.test\n"
				  "93.184.216.34 public.test\n";

/* Put a file of ours over one of the system's, in this mount namespace. */
static bool world_cover(const char *path, const char *text)
{
	char made[] = "/tmp/hearth-world-XXXXXX";
	auto_close int fd = mkstemp(made);
	struct err err;
	bool ok;

	if (fd < 0)
		return false;
	ok = fd_write_all(fd, text, strlen(text), &err) == 0 && fchmod(fd, 0644) == 0 &&
	     mount(made, path, NULL, MS_BIND, NULL) == 0;
	(void)unlink(made);
	return ok;
}

static void *world_serve_names(void *ctx)
{
	int fd = *(int *)ctx;
	uint8_t bytes[DNS_QUERY_MAX];
	uint8_t answer[DNS_ANSWER_MAX];
	struct sockaddr_in peer;
	struct dns_query query;

	for (;;) {
		socklen_t size = sizeof(peer);
		ssize_t n = recvfrom(fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&peer, &size);
		enum dns_rcode rcode = DNS_NXDOMAIN;

		if (n < 0 || !dns_read_query((struct str){(char *)bytes, (size_t)n}, &query) ||
		    name_is_below(query.name, "silent.test"))
			continue;
		if (name_is_below(query.name, "broken.test"))
			rcode = DNS_SERVFAIL;
		(void)sendto(fd, answer, dns_write_rcode(&query, rcode, answer), 0,
			     (struct sockaddr *)&peer, size);
	}
	return NULL;
}

/* For as long as the process lives. */
static bool world_start_nameserver(void)
{
	static int fd;
	const struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(53)};
	pthread_t thread;

	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return fd >= 0 && bind(fd, (const struct sockaddr *)&name, sizeof(name)) == 0 &&
	       pthread_create(&thread, NULL, world_serve_names, &fd) == 0 &&
	       pthread_detach(thread) == 0;
}

/* See WORLD_SILENCE_MS. */
static const char world_resolver[] = "nameserver 127.0.0.1\noptions timeout:2 attempts:1\n";

bool world_enter(void)
{
	const struct in_addr self = {.s_addr = inet_addr(WORLD_ADDRESS)};
	struct err err;

	return unshare(CLONE_NEWNS | CLONE_NEWNET) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       world_cover("/etc/hosts", world_hosts) &&
	       world_cover("/etc/nsswitch.conf", "hosts: files dns\n") &&
	       world_cover("/etc/resolv.conf", world_resolver) && lo_up(&err) == 0 &&
	       lo_take_all(self, &err) == 0 && world_start_nameserver();
}

static void *world_server_main(void *ctx)
{
	struct world_server *server = ctx;

	server->serve(server->fd, server->ctx);
	return NULL;
}

void world_server_start(struct world_server *server, const char *address,
			void (*serve)(int fd, void *ctx), void *ctx)
{
	struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(address)};
	socklen_t size = sizeof(name);

	*server = (struct world_server){.serve = serve, .ctx = ctx};
	server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(server->fd >= 0);
	assert_int_equal(bind(server->fd, (struct sockaddr *)&name, size), 0);
	assert_int_equal(listen(server->fd, 512), 0);
	assert_int_equal(getsockname(server->fd, (struct sockaddr *)&name, &size), 0);
	server->port = ntohs(name.sin_port);
	assert_int_equal(pthread_create(&server->thread, NULL, world_server_main, server), 0);
}

void world_server_stop(struct world_server *server)
{
	(void)shutdown(server->fd, SHUT_RDWR);
	pthread_join(server->thread, NULL);
	(void)close(server->fd);
}

static void *world_client_main(void *ctx)
{
	struct world_client *client = ctx;

	if (client->nsfd >= 0 && (setns(client->nsfd, CLONE_NEWNET) < 0 || close(client->nsfd) < 0))
		abort();
	client->run(client->ctx);
	return NULL;
}

void world_client_start(struct world_client *client, const struct network *network,
			void (*run)(void *ctx), void *ctx)
{
	*client = (struct world_client){.run = run, .ctx = ctx};
	client->nsfd = network ? fcntl(network_nsfd(network), F_DUPFD_CLOEXEC, 0) : -1;
	assert_int_equal(pthread_create(&client->thread, NULL, world_client_main, client), 0);
}

void world_client_end(struct world_client *client)
{
	pthread_join(client->thread, NULL);
}

void world_inside(const struct network *network, void (*run)(void *ctx), void *ctx)
{
	struct world_client client;

	world_client_start(&client, network, run, ctx);
	world_client_end(&client);
}

/* Nothing here may block for ever: a test that hangs says nothing. */
static int world_socket(int type)
{
	const struct timeval patience = {.tv_sec = WORLD_PATIENCE_MS / 1000};
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	return fd;
}

int world_connect(const char *address, in_port_t port)
{
	const struct sockaddr_in name = {.sin_family = AF_INET,
					 .sin_port = htons(port),
					 .sin_addr.s_addr = inet_addr(address)};
	auto_close int fd = world_socket(SOCK_STREAM);

	if (connect(fd, (const struct sockaddr *)&name, sizeof(name)) < 0)
		return -errno;
	return steal_fd(&fd);
}

int world_connect_name(const char *name, in_port_t port)
{
	struct world_answer answer;
	char address[INET_ADDRSTRLEN];

	if (world_ask(name, DNS_A, &answer) != DNS_NOERROR || answer.count != 1)
		return -ENOENT;
	(void)inet_ntop(AF_INET, answer.data, address, sizeof(address));
	return world_connect(address, port);
}

size_t world_query(const char *name, unsigned type, uint8_t out[static DNS_QUERY_MAX])
{
	static const uint8_t header[12] = {0x12, 0x34, 0x01, 0, 0, 1};
	uint8_t *at = out + sizeof(header);

	memcpy(out, header, sizeof(header));
	at += dns_write_name(name, at);
	*at++ = (uint8_t)(type >> 8);
	*at++ = (uint8_t)type;
	*at++ = 0;
	*at++ = DNS_CLASS_IN;
	return (size_t)(at - out);
}

int world_read_answer(const uint8_t *bytes, size_t len, struct world_answer *out)
{
	size_t at = 12;

	*out = (struct world_answer){0};
	if (len < at || bytes[0] != 0x12 || bytes[1] != 0x34 || !(bytes[2] & 0x80))
		return -1;
	out->count = (unsigned)(bytes[6] << 8 | bytes[7]);
	while (out->count > 0 && bytes[at] != 0)
		at += (size_t)bytes[at] + 1;
	if (out->count > 0) {
		at += 5;  /* the rest of the question */
		at += 10; /* the record's name, type, class and TTL */
		out->data_len = (size_t)(bytes[at] << 8 | bytes[at + 1]);
		memcpy(out->data, bytes + at + 2, out->data_len);
	}
	return bytes[3] & 0x0f;
}

int world_ask(const char *name, unsigned type, struct world_answer *out)
{
	const struct sockaddr_in server = {.sin_family = AF_INET,
					   .sin_port = htons(53),
					   .sin_addr.s_addr = inet_addr(RESOLVER_SELF)};
	auto_close int fd = world_socket(SOCK_DGRAM);
	uint8_t bytes[DNS_QUERY_MAX];
	size_t len = world_query(name, type, bytes);
	ssize_t n;

	if (connect(fd, (const struct sockaddr *)&server, sizeof(server)) < 0 ||
	    send(fd, bytes, len, 0) != (ssize_t)len)
		return -1;
	n = recv(fd, bytes, sizeof(bytes), 0);
	return n < 0 ? -1 : world_read_answer(bytes, (size_t)n, out);
}

struct network *world_network(const char *const *hosts, size_t host_count)
{
	struct network_host parsed[NETWORK_HOSTS_MAX];
	struct network *network;
	struct err err;

	for (size_t i = 0; i < host_count; i++)
		check_ok(network_host_parse(str_of(hosts[i]), &parsed[i], &err), &err);
	check_ok(network_open(NETWORK_OPEN, parsed, host_count, &network, &err), &err);
	check_ok(network_serve(network, &err), &err);
	return network;
}

const char *world_host(char text[static 300], const char *name, in_port_t port)
{
	(void)snprintf(text, 300, "%s=127.0.0.1:%u", name, port);
	return text;
}

bool world_read_all(int fd, void *bytes, size_t len)
{
	for (size_t at = 0; at < len;) {
		ssize_t n = recv(fd, (char *)bytes + at, len - at, 0);

		if (n <= 0)
			return false;
		at += (size_t)n;
	}
	return true;
}

bool world_write_all(int fd, const void *bytes, size_t len)
{
	for (size_t at = 0; at < len;) {
		ssize_t n = send(fd, (const char *)bytes + at, len - at, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		at += (size_t)n;
	}
	return true;
}
