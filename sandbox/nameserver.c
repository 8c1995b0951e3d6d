/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nameserver.c - questions over UDP and TCP.
 *
 * A question lives from its packet to its answer. One that waits for the
 * resolver is on the list of questions; while one of a TCP client's does, that
 * client is neither read nor timed, so it cannot go away under it.
 */
#include "sandbox/nameserver_priv.h"

#include <arpa/inet.h>

struct nameserver_client {
	struct nameserver *nameserver;
	struct nameserver_client *next;
	struct nameserver_client **link;
	struct watch watch;
	struct timer idle;
	size_t have; /* bytes of the query and the two of its length */
	uint8_t bytes[2 + DNS_QUERY_MAX];
};

struct nameserver_question {
	struct nameserver *nameserver;
	struct nameserver_question *next;
	struct nameserver_question **link;
	struct nameserver_client *client; /* NULL over UDP */
	struct sockaddr_in peer;          /* over UDP */
	struct resolver_waiter waiter;
	struct dns_query query;
};

struct nameserver {
	struct loop *loop;
	struct resolver *resolver;
	struct watch udp;
	struct watch tcp;
	struct nameserver_question *questions;
	size_t question_count;
	struct nameserver_client *clients;
	size_t client_count;
};

static void nameserver_drop_client(struct nameserver_client *client)
{
	loop_unwatch(client->nameserver->loop, &client->watch);
	loop_disarm(&client->idle);
	auto_close_release(&client->watch.fd);
	*client->link = client->next;
	if (client->next)
		client->next->link = client->link;
	client->nameserver->client_count--;
	free(client);
}

static void nameserver_drop_question(struct nameserver_question *question)
{
	*question->link = question->next;
	if (question->next)
		question->next->link = question->link;
	question->nameserver->question_count--;
	free(question);
}

/* Wait for a client's next query. */
static void nameserver_await(struct nameserver_client *client)
{
	struct nameserver *nameserver = client->nameserver;
	struct err err;

	client->have = 0;
	loop_arm(nameserver->loop, &client->idle, NAMESERVER_IDLE_MS);
	if (loop_watch(nameserver->loop, &client->watch, EPOLLIN, &err) < 0)
		nameserver_drop_client(client);
}

/* An answer fits into any socket buffer; a client that lets it fill is dropped. */
static void nameserver_send_stream(struct nameserver_client *client, const uint8_t *answer,
				   size_t len)
{
	uint8_t bytes[2 + DNS_ANSWER_MAX] = {(uint8_t)(len >> 8), (uint8_t)len};

	memcpy(bytes + 2, answer, len);
	if (send(client->watch.fd, bytes, len + 2, MSG_NOSIGNAL | MSG_DONTWAIT) !=
	    (ssize_t)(len + 2))
		nameserver_drop_client(client);
	else
		nameserver_await(client);
}

static void nameserver_send(struct nameserver_question *question, const uint8_t *answer, size_t len)
{
	if (question->client)
		nameserver_send_stream(question->client, answer, len);
	else
		(void)sendto(question->nameserver->udp.fd, answer, len, MSG_DONTWAIT,
			     (const struct sockaddr *)&question->peer, sizeof(question->peer));
	nameserver_drop_question(question);
}

static void nameserver_send_rcode(struct nameserver_question *question, enum dns_rcode rcode)
{
	uint8_t answer[DNS_ANSWER_MAX];

	nameserver_send(question, answer, dns_write_rcode(&question->query, rcode, answer));
}

static void nameserver_send_record(struct nameserver_question *question, enum dns_type type,
				   struct str data)
{
	uint8_t answer[DNS_ANSWER_MAX];

	nameserver_send(question, answer, dns_write_record(&question->query, type, data, answer));
}

static void nameserver_send_address(struct nameserver_question *question, struct in_addr address)
{
	nameserver_send_record(question, DNS_A,
			       (struct str){(const char *)&address, sizeof(address)});
}

static void nameserver_on_name(void *ctx, const struct resolver_name *name, enum dns_rcode rcode)
{
	struct nameserver_question *question = ctx;

	if (name && question->query.type == DNS_A)
		nameserver_send_address(question, name->address);
	else
		nameserver_send_rcode(question, rcode);
}

/* RFC 6761: localhost and all below it are the machine's own loopback. */
static void nameserver_answer_localhost(struct nameserver_question *question)
{
	const struct in6_addr loopback6 = IN6ADDR_LOOPBACK_INIT;

	if (question->query.type == DNS_A)
		nameserver_send_address(question, (struct in_addr){htonl(INADDR_LOOPBACK)});
	else if (question->query.type == DNS_AAAA)
		nameserver_send_record(question, DNS_AAAA,
				       (struct str){(const char *)&loopback6, sizeof(loopback6)});
	else
		nameserver_send_rcode(question, DNS_NOERROR);
}

/* "4.3.2.1.in-addr.arpa" is 1.2.3.4. */
static bool nameserver_parse_reverse(const char *name, struct in_addr *out)
{
	static const char suffix[] = ".in-addr.arpa";
	char text[INET_ADDRSTRLEN];
	size_t len = strlen(name);
	struct in_addr reversed;

	if (!name_is_below(name, suffix + 1) || len < sizeof(suffix) ||
	    len - (sizeof(suffix) - 1) >= sizeof(text))
		return false;
	len -= sizeof(suffix) - 1;
	memcpy(text, name, len);
	text[len] = '\0';
	if (inet_pton(AF_INET, text, &reversed) != 1)
		return false;
	out->s_addr = __builtin_bswap32(reversed.s_addr);
	return true;
}

static void nameserver_answer_reverse(struct nameserver_question *question)
{
	uint8_t data[NAME_TEXT_MAX + 1];
	const struct resolver_name *name = NULL;
	struct in_addr address;

	if (nameserver_parse_reverse(question->query.name, &address))
		name = resolver_find(question->nameserver->resolver, address);
	if (name)
		nameserver_send_record(
			question, DNS_PTR,
			(struct str){(const char *)data, dns_write_name(name->text, data)});
	else
		nameserver_send_rcode(question, DNS_NXDOMAIN);
}

static void nameserver_answer(struct nameserver_question *question)
{
	const struct dns_query *query = &question->query;

	question->waiter = (struct resolver_waiter){.done = nameserver_on_name, .ctx = question};
	if (query->rcode != DNS_NOERROR)
		nameserver_send_rcode(question, query->rcode);
	else if (query->class != DNS_CLASS_IN)
		nameserver_send_rcode(question, DNS_REFUSED);
	else if (query->name[0] == '\0')
		nameserver_send_rcode(question, DNS_NXDOMAIN);
	else if (name_is_below(query->name, "localhost"))
		nameserver_answer_localhost(question);
	else if (query->type == DNS_PTR)
		nameserver_answer_reverse(question);
	else if (query->type == DNS_A || query->type == DNS_AAAA)
		resolver_ask(question->nameserver->resolver, query->name, &question->waiter);
	else /* a service has no address of its own; a host has nothing but that */
		nameserver_send_rcode(question, query->name[0] == '_' ? DNS_NXDOMAIN : DNS_NOERROR);
}

/* False when the bytes are nothing that gets an answer, or there is no room. */
static bool nameserver_take(struct nameserver *nameserver, struct str message,
			    struct nameserver_client *client, const struct sockaddr_in *peer)
{
	struct nameserver_question *question;
	struct dns_query query;

	if (!dns_read_query(message, &query) ||
	    nameserver->question_count >= NAMESERVER_QUESTIONS_MAX)
		return false;
	question = calloc(1, sizeof(*question));
	if (!question)
		abort();
	question->nameserver = nameserver;
	question->client = client;
	question->query = query;
	if (peer)
		question->peer = *peer;
	question->next = nameserver->questions;
	question->link = &nameserver->questions;
	if (question->next)
		question->next->link = &question->next;
	nameserver->questions = question;
	nameserver->question_count++;
	nameserver_answer(question);
	return true;
}

static void nameserver_on_packet(void *ctx, uint32_t events)
{
	struct nameserver *nameserver = ctx;
	char bytes[DNS_QUERY_MAX];
	struct sockaddr_in peer = {0};
	socklen_t peer_size = sizeof(peer);
	ssize_t n = recvfrom(nameserver->udp.fd, bytes, sizeof(bytes), MSG_DONTWAIT,
			     (struct sockaddr *)&peer, &peer_size);

	(void)events;
	if (n > 0) /* what gets no answer is asked again, or was no question */
		(void)nameserver_take(nameserver, (struct str){bytes, (size_t)n}, NULL, &peer);
}

/* The bytes of a client's query, as far as its length is known, and those of the length. */
static size_t nameserver_wanted(const struct nameserver_client *client)
{
	return 2 + (client->have < 2 ? 0 : (size_t)(client->bytes[0] << 8 | client->bytes[1]));
}

/* Read one query, its length in front of it, and stop there. */
static void nameserver_on_stream(void *ctx, uint32_t events)
{
	struct nameserver_client *client = ctx;
	struct nameserver *nameserver = client->nameserver;
	struct str message = {(const char *)client->bytes + 2, 0};
	ssize_t n = recv(client->watch.fd, client->bytes + client->have,
			 nameserver_wanted(client) - client->have, MSG_DONTWAIT);
	struct err err;

	(void)events;
	if (n < 0 && errno == EAGAIN)
		return;
	client->have += n > 0 ? (size_t)n : 0;
	if (n <= 0 || nameserver_wanted(client) > sizeof(client->bytes)) {
		nameserver_drop_client(client);
		return;
	}
	if (client->have < nameserver_wanted(client))
		return;
	loop_disarm(&client->idle);
	message.len = client->have - 2;
	if (loop_watch(nameserver->loop, &client->watch, 0, &err) < 0 ||
	    !nameserver_take(nameserver, message, client, NULL))
		nameserver_drop_client(client);
}

static void nameserver_on_idle(void *ctx)
{
	nameserver_drop_client(ctx);
}

static void nameserver_on_connection(void *ctx, uint32_t events)
{
	struct nameserver *nameserver = ctx;
	auto_close int fd = accept4(nameserver->tcp.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct nameserver_client *client;

	(void)events;
	if (fd < 0 || nameserver->client_count >= NAMESERVER_CLIENTS_MAX)
		return;
	client = calloc(1, sizeof(*client));
	if (!client)
		abort();
	client->nameserver = nameserver;
	client->watch =
		(struct watch){.fd = steal_fd(&fd), .ready = nameserver_on_stream, .ctx = client};
	client->idle = (struct timer){.due = nameserver_on_idle, .ctx = client};
	client->next = nameserver->clients;
	client->link = &nameserver->clients;
	if (client->next)
		client->next->link = &client->next;
	nameserver->clients = client;
	nameserver->client_count++;
	nameserver_await(client);
}

int nameserver_open(struct loop *loop, struct resolver *resolver, int udpfd, int tcpfd,
		    struct nameserver **out, struct err *err)
{
	struct nameserver *nameserver = calloc(1, sizeof(*nameserver));

	if (!nameserver)
		abort();
	nameserver->loop = loop;
	nameserver->resolver = resolver;
	nameserver->udp =
		(struct watch){.fd = udpfd, .ready = nameserver_on_packet, .ctx = nameserver};
	nameserver->tcp =
		(struct watch){.fd = tcpfd, .ready = nameserver_on_connection, .ctx = nameserver};
	if (loop_watch(loop, &nameserver->udp, EPOLLIN, err) < 0 ||
	    loop_watch(loop, &nameserver->tcp, EPOLLIN, err) < 0) {
		nameserver_close(nameserver);
		return -1;
	}
	*out = nameserver;
	return 0;
}

void nameserver_close(struct nameserver *nameserver)
{
	if (!nameserver)
		return;
	loop_unwatch(nameserver->loop, &nameserver->udp);
	loop_unwatch(nameserver->loop, &nameserver->tcp);
	while (nameserver->questions)
		nameserver_drop_question(nameserver->questions);
	while (nameserver->clients)
		nameserver_drop_client(nameserver->clients);
	free(nameserver);
}
