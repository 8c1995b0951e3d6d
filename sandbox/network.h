/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network.h - a machine's network: a namespace with `lo` alone, a resolver,
 * and TCP redirected to an egress loop that dials from the host.
 *
 * Inside every IPv4 address is local and no route leads out. nftables' TPROXY
 * hands connections to one listening socket, which learns the wanted address
 * from getsockname(); all else is refused at once. The resolver gives each name
 * an address of its own out of 198.18.0.0/16, so the name behind a connection
 * is known exactly. The host's network is not changed.
 *
 * The machine's own addresses are 127.0.0.0/8, ::1 and 198.18.0.1; the resolver
 * has port 53 of the last. A connection is accepted before it is dialled, so
 * one that cannot be made ends in a reset; only link-local, multicast and
 * reserved targets are refused by the rules, before they are accepted.
 *
 * The namespace belongs to the plane's user namespace: no capability inside
 * can change its rules. It lives as long as its descriptor and its processes.
 *
 * Open mode (build steps): every name that the host can resolve is answered,
 * and every port of it may be dialled, at private addresses, too; loopback,
 * link-local, multicast, unspecified and metadata addresses never, also not by
 * a name that leads there, except where the operator's --add-host says so. The
 * host's other addresses count as private or public like any: what listens
 * there is reachable.
 *
 * Limits: 1,024 connections, or a sixth of RLIMIT_NOFILE where that is less
 * (more wait for their turn); 65,533 names; the bytes of a connection are kept
 * in the kernel, at most 64 KiB a direction.
 *
 * Formats: RFC 1035 (DNS), Linux nftables TPROXY.
 */
#pragma once

#include "layers/base/buf.h"
#include "layers/base/cancel.h"

#include <netinet/in.h>
#include <sys/socket.h>

enum network_mode {
	NETWORK_NONE, /* lo only, nothing answers */
	NETWORK_OPEN, /* as above */
};

#define NETWORK_HOSTS_MAX 256
#define NETWORK_NAME_MAX 253

/* The operator's word for where a name lives: dialled as given. */
struct network_host {
	char name[NETWORK_NAME_MAX + 1]; /* lower case, no trailing dot */
	struct sockaddr_storage address; /* port 0: the port that was asked for */
};

/* NAME=ADDR[:PORT]; IPv6 in brackets. ERR_INVALID says what was expected. */
int network_host_parse(struct str text, struct network_host *out, struct err *err) MUST_CHECK;

struct network;

/*
 * Make the namespace. The calling thread stays in its own, and no thread is
 * left behind until network_serve().
 */
int network_open(enum network_mode mode, const struct network_host *hosts, size_t host_count,
		 struct network **out, struct err *err) MUST_CHECK;

/* The network namespace. Borrowed. */
int network_nsfd(const struct network *network);

/*
 * A detached, read-only mount of this namespace's sysfs, always the same one: it
 * can be attached once. The caller closes the descriptor.
 */
int network_sysfs(const struct network *network, int *out_fd, struct err *err) MUST_CHECK;

/* The text of the machine's resolv.conf ("" for NETWORK_NONE). */
struct str network_resolv_conf(const struct network *network);

/*
 * Serve resolver and egress in threads of our own until network_close(). The
 * threads run in the host's network namespace and block all signals.
 */
int network_serve(struct network *network, struct err *err) MUST_CHECK;

/* Stop the threads, cut the connections, free the namespace. */
void network_close(struct network *network);

DEFINE_AUTO(network, struct network *, network_close);
