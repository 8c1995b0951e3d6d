/* SPDX-License-Identifier: Apache-2.0 */
/*
 * egress.c - a machine's connections, from accept to end.
 *
 * 	state      holds                     ends by
 * 	asking     client, resolver_waiter   a name, or a reset
 * 	dialling   client, dial              an upstream socket, or a reset
 * 	relaying   client, upstream, relay   both directions closed, or a reset
 *
 * The kernel has accepted a connection before anything is known about its
 * target, so a target that cannot be reached ends in a reset.
 */
#include "sandbox/egress_priv.h"

#include "layers/base/thread.h"
#include "sandbox/dial_priv.h"
#include "sandbox/nameserver_priv.h"
#include "sandbox/relay_priv.h"

#include <netinet/tcp.h>
#include <sys/resource.h>

#define EGRESS_PAUSE_MS 100 /* until the next accept when descriptors are short */

/* When a peer is silent, ask after 60 s whether it lives, and give up after 6 times 10 s more. */
#define EGRESS_KEEPALIVE_S 60
#define EGRESS_PROBE_S 10
#define EGRESS_PROBES 6

struct egress_conn {
	struct egress *egress;
	struct egress_conn *next;
	struct egress_conn **link;
	int clientfd;
	int upstreamfd;
	union address wanted;
	struct resolver_waiter waiter;
	struct dial dial;
	struct relay relay;
};

struct egress {
	struct loop loop;
	struct resolver *resolver;
	struct nameserver *nameserver;
	struct watch listener;
	struct timer pause;
	struct relay_pipes pipes;
	struct egress_conn *conns;
	size_t count;
	size_t max;
	pthread_t thread;
	bool has_thread;
};

static void egress_accept_more(void *ctx)
{
	struct egress *egress = ctx;
	struct err err;

	if (egress->count >= egress->max)
		return;
	loop_disarm(&egress->pause);
	if (loop_watch(&egress->loop, &egress->listener, EPOLLIN, &err) < 0)
		loop_arm(&egress->loop, &egress->pause, EGRESS_PAUSE_MS);
}

/* Close with a reset: the peer must not take a cut for an end. */
static void egress_reset(int *fd)
{
	const struct linger linger = {.l_onoff = 1};

	if (*fd >= 0)
		(void)setsockopt(*fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	auto_close_release(fd);
}

static void egress_drop(struct egress_conn *conn, bool is_cut)
{
	struct egress *egress = conn->egress;

	dial_done(&conn->dial);
	if (conn->upstreamfd >= 0)
		relay_done(&conn->relay);
	if (is_cut) {
		egress_reset(&conn->clientfd);
		egress_reset(&conn->upstreamfd);
	} else {
		auto_close_release(&conn->clientfd);
		auto_close_release(&conn->upstreamfd);
	}
	*conn->link = conn->next;
	if (conn->next)
		conn->next->link = conn->link;
	free(conn);
	egress->count--;
	egress_accept_more(egress);
}

static void egress_on_end(void *ctx, bool is_cut)
{
	egress_drop(ctx, is_cut);
}

/* Bytes go on as they come, and a peer that is gone is noticed. */
static void egress_tune(int fd)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{IPPROTO_TCP, TCP_NODELAY, 1},
		{SOL_SOCKET, SO_KEEPALIVE, 1},
		{IPPROTO_TCP, TCP_KEEPIDLE, EGRESS_KEEPALIVE_S},
		{IPPROTO_TCP, TCP_KEEPINTVL, EGRESS_PROBE_S},
		{IPPROTO_TCP, TCP_KEEPCNT, EGRESS_PROBES},
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		(void)setsockopt(fd, options[i].level, options[i].name, &options[i].value,
				 sizeof(options[i].value));
}

static void egress_on_dialled(void *ctx, int fd)
{
	struct egress_conn *conn = ctx;
	const int fds[2] = {conn->clientfd, fd};
	struct err err;

	if (fd < 0) {
		egress_drop(conn, true);
		return;
	}
	egress_tune(fd);
	conn->upstreamfd = fd;
	relay_init(&conn->relay, &conn->egress->loop, &conn->egress->pipes, fds);
	conn->relay.ended = egress_on_end;
	conn->relay.ctx = conn;
	if (relay_start(&conn->relay, &err) < 0)
		egress_drop(conn, true);
}

static void egress_add_target(struct egress_conn *conn, const union address *target, bool trusted)
{
	union address address = *target;

	if (!trusted && address_kind(&address) == ADDRESS_REFUSED)
		return;
	if (!trusted || address_port(&address) == 0)
		address_set_port(&address, address_port(&conn->wanted));
	(void)dial_add(&conn->dial, &address); /* a ninth address is one too many */
}

static void egress_on_name(void *ctx, const struct resolver_name *name, enum dns_rcode rcode)
{
	struct egress_conn *conn = ctx;

	(void)rcode; /* whatever it is, there is no address */
	for (size_t i = 0; name && i < name->target_count; i++)
		egress_add_target(conn, &name->targets[i], name->trusted);
	dial_start(&conn->dial);
}

static void egress_begin(struct egress_conn *conn)
{
	struct egress *egress = conn->egress;
	const struct resolver_name *name =
		resolver_find(egress->resolver, conn->wanted.in.sin_addr);

	if (name) {
		resolver_ask(egress->resolver, name->text, &conn->waiter);
		return;
	}
	/* Dial the address itself; one of the resolver's range without a name is refused. */
	egress_add_target(conn, &conn->wanted, false);
	dial_start(&conn->dial);
}

static void egress_add(struct egress *egress, int clientfd, const union address *wanted)
{
	struct egress_conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		abort();
	conn->egress = egress;
	conn->clientfd = clientfd;
	conn->upstreamfd = -1;
	conn->wanted = *wanted;
	conn->waiter = (struct resolver_waiter){.done = egress_on_name, .ctx = conn};
	dial_init(&conn->dial, &egress->loop, egress_on_dialled, conn);
	conn->next = egress->conns;
	conn->link = &egress->conns;
	if (conn->next)
		conn->next->link = &conn->next;
	egress->conns = conn;
	egress->count++;
	egress_tune(clientfd);
	egress_begin(conn);
}

static void egress_on_connection(void *ctx, uint32_t events)
{
	struct egress *egress = ctx;
	auto_close int fd = accept4(egress->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	union address wanted = {0};
	socklen_t size = sizeof(wanted);

	(void)events;
	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
		loop_unwatch(&egress->loop, &egress->listener);
		loop_arm(&egress->loop, &egress->pause, EGRESS_PAUSE_MS);
	}
	if (fd < 0 || getsockname(fd, &wanted.any, &size) < 0)
		return;
	egress_add(egress, steal_fd(&fd), &wanted);
	/* Later connections wait in the backlog. */
	if (egress->count >= egress->max)
		loop_unwatch(&egress->loop, &egress->listener);
}

static size_t egress_ceiling(void)
{
	struct rlimit files = {.rlim_cur = 1024};
	rlim_t most;

	(void)getrlimit(RLIMIT_NOFILE, &files);
	most = files.rlim_cur > EGRESS_SPARE_FDS + EGRESS_CONNECTION_FDS
		       ? (files.rlim_cur - EGRESS_SPARE_FDS) / EGRESS_CONNECTION_FDS
		       : 1;
	return most < EGRESS_CONNECTIONS_MAX ? (size_t)most : EGRESS_CONNECTIONS_MAX;
}

static void *egress_main(void *ctx)
{
	struct egress *egress = ctx;

	loop_run(&egress->loop);
	return NULL;
}

static int egress_start_thread(struct egress *egress, struct err *err)
{
	if (thread_start(&egress->thread, egress_main, egress, err) < 0)
		return -1;
	egress->has_thread = true;
	return 0;
}

int egress_open(const struct network_ns *ns, const struct network_host *hosts, size_t host_count,
		struct egress **out, struct err *err)
{
	struct egress *egress = calloc(1, sizeof(*egress));

	if (!egress)
		abort();
	if (loop_init(&egress->loop, err) < 0) {
		free(egress);
		return -1;
	}
	egress->max = egress_ceiling();
	egress->pause = (struct timer){.due = egress_accept_more, .ctx = egress};
	egress->listener = (struct watch){
		.fd = ns->fds[NETWORK_FD_LISTENER], .ready = egress_on_connection, .ctx = egress};
	if (resolver_open(&egress->loop, hosts, host_count, &egress->resolver, err) < 0 ||
	    nameserver_open(&egress->loop, egress->resolver, ns->fds[NETWORK_FD_DNS_UDP],
			    ns->fds[NETWORK_FD_DNS_TCP], &egress->nameserver, err) < 0 ||
	    loop_watch(&egress->loop, &egress->listener, EPOLLIN, err) < 0 ||
	    egress_start_thread(egress, err) < 0) {
		egress_close(egress);
		return -1;
	}
	*out = egress;
	return 0;
}

void egress_close(struct egress *egress)
{
	if (!egress)
		return;
	if (egress->has_thread) {
		loop_stop(&egress->loop);
		pthread_join(egress->thread, NULL);
	}
	resolver_close(egress->resolver);
	nameserver_close(egress->nameserver);
	while (egress->conns)
		egress_drop(egress->conns, true);
	relay_pipes_done(&egress->pipes);
	loop_done(&egress->loop);
	free(egress);
}
