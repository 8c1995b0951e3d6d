/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.h - a host of the test's own, with servers on it and clients inside a
 * machine's network.
 *
 * The host is a network namespace in which every address is local: whatever
 * the egress loop dials, a server bound to 0.0.0.0 would get it. Its names are
 * those of world_hosts; names below "silent.test" get no answer, those below
 * "broken.test" a failure, and no others exist.
 */
#pragma once

#include "sandbox/dns_priv.h"
#include "sandbox/network.h"

#include <pthread.h>

#define WORLD_SILENCE_MS 2000 /* a resolver waits for an answer that does not come */

/* False where this process may not make one. Once, before any thread. */
bool world_enter(void);

/* A thread that is given a socket listening at an address and a port of its own. */
struct world_server {
	int fd;
	in_port_t port;
	pthread_t thread;
	void (*serve)(int fd, void *ctx);
	void *ctx;
};

void world_server_start(struct world_server *server, const char *address,
			void (*serve)(int fd, void *ctx), void *ctx);
/* accept() fails from here on. */
void world_server_stop(struct world_server *server);

/* A thread inside a machine's network, or on the host for NULL. */
struct world_client {
	int nsfd;
	pthread_t thread;
	void (*run)(void *ctx);
	void *ctx;
};

void world_client_start(struct world_client *client, const struct network *network,
			void (*run)(void *ctx), void *ctx);
void world_client_end(struct world_client *client);

/* The two above in one. */
void world_inside(const struct network *network, void (*run)(void *ctx), void *ctx);

/* A blocking TCP connection; -errno on failure. */
int world_connect(const char *address, in_port_t port);

/* To an address that the machine's resolver has for the name. */
int world_connect_name(const char *name, in_port_t port);

/* A DNS message for a name; returns its length. */
size_t world_query(const char *name, unsigned type, uint8_t out[static DNS_QUERY_MAX]);

/* Ask the machine's resolver. Returns the rcode, -1 without an answer. */
struct world_answer {
	unsigned count; /* of records */
	size_t data_len;
	uint8_t data[NAME_TEXT_MAX + 1]; /* of the first */
};
int world_ask(const char *name, unsigned type, struct world_answer *out);

/* What world_ask() makes of a message; -1 for one that is no answer. */
int world_read_answer(const uint8_t *bytes, size_t len, struct world_answer *out);

/* A network in open mode that serves, with these --add-host. Fails the test. */
struct network *world_network(const char *const *hosts, size_t host_count);

/* "NAME=127.0.0.1:PORT" */
const char *world_host(char text[static 300], const char *name, in_port_t port);

bool world_read_all(int fd, void *bytes, size_t len);
bool world_write_all(int fd, const void *bytes, size_t len);
